import { expect } from 'chai'
import { checked, parseNotPassing, parsePassing, readLists, withoutNames } from './lists.ts'
import { parseReport, suiteFailures } from './report.ts'
import { focusOf } from './suite.ts'

const document = [
  '# Title',
  'Words.',
  '',
  '## Needs pods',
  '- [sig-a] one `x` [Conformance]',
  '',
  '## Quota',
  'Why.',
  '- [sig-b] two',
]

describe('lists of upstream tests', () => {
  it('are committed and name every test once', () => {
    const { passing, withWorkloads, notPassing } = readLists()
    expect(passing).to.have.length.greaterThan(0)
    for (const list of [passing, withWorkloads]) expect([...list].sort()).to.deep.equal(list)
    for (const { reason, names } of notPassing) expect(reason, names[0] ?? '').to.not.equal('')
  })

  it('take reasons from headings', () => {
    expect(parseNotPassing(document.join('\n'))).to.deep.equal([
      { reason: 'Needs pods', names: ['[sig-a] one `x` [Conformance]'] },
      { reason: 'Quota', names: ['[sig-b] two'] },
    ])
  })

  it('remove only the names that pass now', () => {
    expect(withoutNames(document.join('\n'), new Set(['[sig-b] two', 'Why.']))).to.equal(
      document.slice(0, -1).join('\n'),
    )
  })

  it('refuse a name in two lists', () => {
    expect(() => checked(['a'], ['a'], [])).to.throw('"a" is listed twice')
    expect(() => checked(parsePassing('a\nb\n'), [], [{ reason: 'r', names: ['b'] }])).to.throw('"b" is listed twice')
  })
})

describe('report of the upstream suite', () => {
  const report = JSON.stringify([
    {
      SpecReports: [
        { LeafNodeType: 'SynchronizedBeforeSuite', State: 'failed', Failure: { Message: 'no server' } },
        {
          LeafNodeType: 'It',
          ContainerHierarchyTexts: ['[sig-a] A', 'with b'],
          LeafNodeText: 'works [Conformance]',
          State: 'passed',
          RunTime: 1_500_000_000,
        },
        {
          LeafNodeType: 'It',
          ContainerHierarchyTexts: null,
          LeafNodeText: 'bare',
          State: 'failed',
          Failure: { Message: 'no' },
        },
      ],
    },
  ])

  it('joins all texts of a test to its name', () => {
    expect(parseReport(report)).to.deep.equal([
      { name: '[sig-a] A with b works [Conformance]', state: 'passed', seconds: 1.5, message: '' },
      { name: 'bare', state: 'failed', seconds: 0, message: 'no' },
    ])
  })

  it('distinguishes a suite that could not start', () => {
    expect(suiteFailures(report)).to.deep.equal(['no server'])
  })

  it('refuses a text that is not a report', () => {
    expect(() => parseReport('{}')).to.throw('no Ginkgo JSON report')
  })
})

describe('focus', () => {
  it('quotes names literally', () => {
    const focus = new RegExp(focusOf(['[sig-a] x (y) /z.', 'other']))
    expect(focus.test('Kubernetes e2e suite [sig-a] x (y) /z.')).to.equal(true)
    expect(focus.test('s x (y) /z.')).to.equal(false)
    expect(focus.test('other things')).to.equal(false)
  })
})
