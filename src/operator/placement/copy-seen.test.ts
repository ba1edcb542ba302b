import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { contentHash } from '#crds/index.ts'
import { copySeen, selects } from './copy-seen.ts'

const spec = { replicas: 2, template: { metadata: { labels: { app: 'web' } } } }
const complete = { observed: contentHash(spec), replicas: 2, updatedReplicas: 2, availableReplicas: 2 }

function workload(pieces: Record<string, object>): KubeObject {
  const annotations = Object.entries(pieces).map(([member, piece]) => [
    `status.kcp.dev/${member}`,
    JSON.stringify(piece),
  ])
  const metadata = { name: 'web', annotations: Object.fromEntries(annotations) as Record<string, string> }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec }
}

function service(known: Record<string, Record<string, number>>, app = 'web'): KubeObject {
  const annotations = Object.entries(known).map(([member, endpoints]) => [
    `status.kcp.dev/${member}`,
    JSON.stringify({ endpoints }),
  ])
  const metadata = { name: app, annotations: Object.fromEntries(annotations) as Record<string, string> }
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app } } }
}

describe('what is seen of the copy in west, with a copy in east', () => {
  const all = (): boolean => true
  const rows: [string, Record<string, Record<string, number>>, { flat?: string[]; ready?: string[] }, object][] = [
    ['is published where both know its endpoints', { east: { west: 2 }, west: { west: 2 } }, {}, { published: true }],
    [
      'is not published where east does not know them',
      { east: { east: 2 }, west: { west: 2 } },
      {},
      { published: false },
    ],
    ['is not published where west has said nothing', { east: { west: 2 } }, {}, { published: false }],
    [
      'waits for no member that does not answer',
      { east: { east: 2 }, west: { west: 2 } },
      { ready: ['west'] },
      { published: true },
    ],
    [
      'waits for no member that its pods do not reach',
      { east: { east: 2 }, west: { west: 2 } },
      { flat: [] },
      { published: true },
    ],
    [
      'has endpoints while anybody knows of some',
      { east: { west: 1 }, west: {} },
      {},
      { endpointsGone: false, endpoints: 1 },
    ],
    [
      'has none of which only the silent know',
      { east: { west: 1 }, west: {} },
      { ready: ['west'] },
      { endpointsGone: true },
    ],
  ]
  for (const [title, known, { flat, ready }, expected] of rows) {
    it(title, () => {
      const web = workload({ west: complete })
      const surroundings = {
        services: [service(known), service({ east: { west: 9 } }, 'another')].filter((one) => selects(one, web)),
        networkOf: (member: string) =>
          flat === undefined || flat.includes(member) ? ('Flat' as const) : ('None' as const),
        isReady: ready === undefined ? all : (member: string) => ready.includes(member),
      }
      expect(copySeen(web, 'west', surroundings)).to.include(expected)
    })
  }

  for (const [title, piece, problem] of [
    [
      'nothing where it takes its time',
      { conditions: [{ type: 'Progressing', status: 'True', message: 'x' }] },
      undefined,
    ],
    ['what the member refuses', { error: 'forbidden' }, 'forbidden'],
    ['a quota', { conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'quota' }] }, 'quota'],
    ['a rollout that has stopped', { conditions: [{ type: 'Progressing', status: 'False', message: 'late' }] }, 'late'],
  ] as const)
    it(`names as its problem ${title}`, () => {
      const surroundings = { services: [], networkOf: () => 'Flat' as const, isReady: all }
      expect(copySeen(workload({ west: piece }), 'west', surroundings).problem).to.equal(problem)
    })

  it('waits for no endpoints to go that only give pods their names', () => {
    const named = service({ west: { west: 2 } })
    const spec = { ...(named['spec'] as object), clusterIP: 'None', publishNotReadyAddresses: true }
    const surroundings = { networkOf: () => 'Flat' as const, isReady: () => true }
    const seen = (services: readonly KubeObject[]) => copySeen(workload({}), 'west', { services, ...surroundings })
    expect(seen([named])).to.deep.include({ published: true, endpointsGone: false, endpoints: 2 })
    expect(seen([{ ...named, spec }])).to.deep.include({ published: true, endpointsGone: true, endpoints: 0 })
  })
})
