import { expect } from 'chai'
import { policiesOf } from './pod-security-labels.ts'

const label = (rest: string): string => `pod-security.kubernetes.io/${rest}`

describe('pod security labels of a namespace', () => {
  it('ask for nothing where there are none', () => {
    expect(policiesOf()).to.equal(undefined)
    expect(policiesOf({ team: 'a' })).to.equal(undefined)
  })

  it('warn at the enforced level, unless they say otherwise', () => {
    const enforce = { [label('enforce')]: 'baseline', [label('enforce-version')]: 'v1.24' }
    expect(policiesOf(enforce)?.warn).to.deep.equal({ level: 'baseline', version: 24 })
    expect(policiesOf({ ...enforce, [label('warn')]: 'privileged' })?.warn.level).to.equal('privileged')
    expect(policiesOf({ ...enforce, [label('warn-version')]: 'v1.20' })?.warn).to.deep.equal({
      level: 'baseline',
      version: 20,
    })
  })

  it('enforce restricted where they cannot be read', () => {
    const policies = policiesOf({ [label('enforce')]: 'tight', [label('audit')]: 'x', [label('warn-version')]: '1' })
    expect(policies?.enforce).to.deep.equal({ level: 'restricted', version: 'latest' })
    expect(policies?.audit.level).to.equal('privileged')
    expect(policies?.warn.level).to.equal('privileged')
    expect(policies?.causes.map(({ field, message }) => `${field ?? ''}: ${message}`)).to.deep.equal([
      `metadata.labels[${label('enforce')}]: Invalid value: "tight": must be one of privileged, baseline, restricted`,
      `metadata.labels[${label('audit')}]: Invalid value: "x": must be one of privileged, baseline, restricted`,
      `metadata.labels[${label('warn-version')}]: Invalid value: "1": must be "latest" or "v1.x"`,
    ])
  })
})
