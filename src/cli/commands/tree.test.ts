import { expect } from 'chai'
import type { LogicalCluster } from '#crds/index.ts'
import { treeOf, treeText } from './tree.ts'

const cluster = (name: string, parent?: string, limits?: object): LogicalCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'LogicalCluster',
  metadata: { name },
  spec: { ...(parent !== undefined && { parentRef: { name: parent } }), ...(limits !== undefined && { limits }) },
  status: { conditions: [{ type: 'Ready', status: 'True', reason: 'Served', message: '', lastTransitionTime: '' }] },
})

describe('kcp tree', () => {
  it('draws logical clusters below their parents, with limits, and those with invalid parents at the top', () => {
    const items = [
      cluster('test', 'acme'),
      cluster('dev', 'acme', { storage: '1Gi', children: 2 }),
      cluster('deep', 'dev'),
      cluster('acme'),
      cluster('flat'),
      cluster('lost', 'nowhere'),
    ]
    expect(treeText(treeOf(items)).trimEnd().split('\n')).to.deep.equal([
      'NAME         READY   LIMITS                   PROBLEM',
      'acme         True',
      '├─ dev       True    storage=1Gi,children=2',
      '│  └─ deep   True',
      '└─ test      True',
      'flat         True',
      'lost         True                             logical cluster "nowhere", which is named as parent, does not exist',
    ])
    expect(treeOf(items, 'dev').map(({ name }) => name)).to.deep.equal(['dev'])
    expect(treeText([])).to.equal('')
  })
  it('ends at a cycle', () => {
    const nodes = treeOf([cluster('a', 'b'), cluster('b', 'a')])
    expect(nodes.map(({ name, children }) => [name, children.length])).to.deep.equal([
      ['a', 0],
      ['b', 0],
    ])
  })
})
