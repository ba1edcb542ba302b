import { expect } from 'chai'
import type { LogicalCluster } from '#crds/index.ts'
import { listText } from './list.ts'
import type { OutputFormat } from './output.ts'

const at = (seconds: number): string => new Date(seconds * 1000).toISOString()
const cluster = (name: string, status?: LogicalCluster['status']): LogicalCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'LogicalCluster',
  metadata: { name, creationTimestamp: at(0) },
  ...(status && { status }),
})
const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: at(1) } as const
const items = [
  cluster('acme', { id: 'abcdefghij', url: 'https://host/acme', conditions: [ready] }),
  cluster('a-longer-name'),
]
const text = (format: OutputFormat, of = items): string => listText(of, format, 300_000)

describe('the list of logical clusters', () => {
  it('is a table with the state of each', () =>
    expect(text('table').split('\n')).to.deep.equal([
      'NAME            READY     REASON   AGE',
      'acme            True      Ready    5m',
      'a-longer-name   Unknown            5m',
      '',
    ]))
  it('has ids and URLs where it is wide', () =>
    expect(text('wide').split('\n')[1]).to.match(/^acme +True +Ready +5m +abcdefghij +https:\/\/host\/acme$/))
  it('is names for scripts', () =>
    expect(text('name')).to.equal('logicalcluster.kcp.dev/acme\nlogicalcluster.kcp.dev/a-longer-name\n'))
  it('is a List for programs', () => {
    expect(JSON.parse(text('json'))).to.deep.equal({ apiVersion: 'v1', kind: 'List', items })
    expect(text('yaml')).to.match(/^apiVersion: v1\nkind: List\nitems:\n {2}- apiVersion: kcp.dev\/v1alpha1\n/)
  })
  it('is nothing where there is none', () => expect(text('table', [])).to.equal(''))
})
