// flowcontrol.apiserver.k8s.io.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })

export const flowRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
      kind: 'PriorityLevelConfiguration',
      metadata: wide('level'),
      spec: {
        type: 'Limited',
        limited: {
          nominalConcurrencyShares: 10,
          limitResponse: { type: 'Queue', queuing: { queues: 8, handSize: 4, queueLengthLimit: 10 } },
        },
      },
    },
    others: [
      ['nothing', { spec: null }],
      ['an unknown type', { spec: { type: 'x' } }],
      ['Exempt with limits', { spec: { type: 'Exempt' } }],
      ['Limited without', { spec: { limited: null } }],
      ['Reject with queues', { spec: { limited: { limitResponse: { type: 'Reject' } } } }],
      [
        'invalid queues',
        {
          spec: {
            limited: {
              nominalConcurrencyShares: -1,
              lendablePercent: 200,
              borrowingLimitPercent: -1,
              limitResponse: { queuing: { queues: 0, handSize: 9, queueLengthLimit: 0 } },
            },
          },
        },
      ],
      ['hands above queues', { spec: { limited: { limitResponse: { queuing: { queues: 2, handSize: 9 } } } } }],
      [
        'defaults',
        {
          spec: {
            limited: {
              nominalConcurrencyShares: null,
              limitResponse: { queuing: { queues: null, handSize: null, queueLengthLimit: null } },
            },
          },
        },
      ],
    ],
    updates: [
      ['shares', { spec: { limited: { nominalConcurrencyShares: 20 } } }],
      ['the type', { spec: { type: 'Exempt', limited: null } }],
    ],
    parts: [
      [
        'status',
        'conditions',
        { status: { conditions: [{ type: 'X', status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z' }] } },
      ],
      [
        'status',
        'conditions twice',
        {
          status: {
            conditions: [
              { type: 'X', status: 'True' },
              { type: 'X', status: 'x' },
              { type: '', status: '' },
            ],
          },
        },
      ],
    ],
  }),
  // A controller of a real server writes conditions into stored objects at some time.
  ...kindRows({
    object: {
      apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
      kind: 'FlowSchema',
      metadata: wide('flow'),
      spec: {
        priorityLevelConfiguration: { name: 'exempt' },
        matchingPrecedence: 500,
        distinguisherMethod: { type: 'ByUser' },
        rules: [
          {
            subjects: [{ kind: 'User', user: { name: 'nobody-$ID' } }],
            nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }],
          },
        ],
      },
    },
    others: [
      ['nothing', { spec: null }],
      ['precedence', { spec: { matchingPrecedence: 0 } }],
      ['too much precedence', { spec: { matchingPrecedence: 20000 } }],
      ['precedence of one', { spec: { matchingPrecedence: 1 } }],
      ['an unknown method', { spec: { distinguisherMethod: { type: 'x' } } }],
      ['no level', { spec: { priorityLevelConfiguration: { name: '' } } }],
      [
        'invalid rules',
        {
          spec: {
            rules: [
              {},
              {
                subjects: [
                  { kind: 'X' },
                  { kind: 'User' },
                  { kind: 'Group', group: { name: '' } },
                  { kind: 'ServiceAccount', serviceAccount: { name: '', namespace: '' } },
                ],
                resourceRules: [
                  { verbs: ['x', '*'], apiGroups: [], resources: ['*', 'a'], namespaces: [] },
                  { verbs: ['get'], apiGroups: ['A_'], resources: ['a'], clusterScope: true, namespaces: ['*', 'b'] },
                ],
                nonResourceRules: [{ verbs: [], nonResourceURLs: ['x', '/*', '/a*b'] }],
              },
            ],
          },
        },
      ],
      ['no rules', { spec: { rules: null } }],
    ],
    updates: [['precedence', { spec: { matchingPrecedence: 600 } }]],
    parts: [
      [
        'status',
        'conditions',
        { status: { conditions: [{ type: 'Dangling', status: 'False', lastTransitionTime: '2020-01-01T00:00:00Z' }] } },
      ],
    ],
  }).filter(({ title }) => title.includes(': new with')),
]
