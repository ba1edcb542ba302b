// resource.k8s.io.
import type { JsonObject } from '../../../src/apimachinery/meta/index.ts'
import type { Row } from '../support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const labels = { app: 'web' }
const meta = { labels }
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })
const device = { exactly: { deviceClassName: 'x.example.com' } }

export const deviceRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: 'class-$ID.example.com' },
      spec: { config: [{ opaque: { driver: 'a.example.com', parameters: { x: 1 } } }] },
    },
    others: [
      ['nothing', { spec: null }],
      ['config that is wrong', { spec: { config: [{}, { opaque: { driver: 'A B', parameters: null } }] } }],
      ['a selector that is wrong', { spec: { selectors: [{}] } }],
    ],
    updates: [['config', { spec: { config: null } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: meta,
      spec: { devices: { requests: [{ name: 'r', ...device }] } },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'requests that are wrong',
        {
          spec: {
            devices: {
              requests: [
                { name: 'A_' },
                { name: 'r', exactly: { deviceClassName: '' } },
                { name: 'r', exactly: { deviceClassName: 'x', allocationMode: 'Huh', count: 5 } },
                { name: 's', exactly: { deviceClassName: 'x', allocationMode: 'All', count: 5 } },
              ],
            },
          },
        },
      ],
      [
        'subrequests',
        {
          spec: {
            devices: {
              requests: [
                {
                  name: 'r',
                  exactly: null,
                  firstAvailable: [
                    { name: 'a', deviceClassName: 'x' },
                    { name: 'a', deviceClassName: '' },
                  ],
                },
              ],
            },
          },
        },
      ],
      [
        'constraints',
        { spec: { devices: { constraints: [{ requests: ['no'] }, { requests: ['r'], matchAttribute: 'x y' }] } } },
      ],
      [
        'an admin',
        { spec: { devices: { requests: [{ name: 'r', exactly: { ...device.exactly, adminAccess: true } }] } } },
      ],
      ['a status', { status: { allocation: {} } }],
    ],
    updates: [
      ['the spec', { spec: { devices: { requests: [{ name: 'x', ...device }] } } }],
      ['a label', { metadata: { labels: { a: 'b' } } }],
    ],
    parts: [
      [
        'status',
        'reserved without an allocation',
        { status: { reservedFor: [{ resource: 'pods', name: 'x', uid: 'y' }] } },
      ],
      [
        'status',
        'allocated',
        {
          status: {
            allocation: { devices: { results: [{ request: 'r', driver: 'a.example.com', pool: 'p', device: 'd' }] } },
          },
        },
      ],
      ['status', 'reserved', { status: { reservedFor: [{ resource: 'pods', name: 'x', uid: 'y' }] } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaimTemplate',
      metadata: meta,
      spec: { metadata: { labels }, spec: { devices: { requests: [{ name: 'r', ...device }] } } },
    },
    others: [
      ['nothing', { spec: null }],
      ['labels that are wrong', { spec: { metadata: { labels: { 'a b': 'c' } } } }],
    ],
    updates: [['the spec', { spec: { spec: { devices: { requests: [{ name: 'x', ...device }] } } } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: wide('slice'),
      spec: {
        driver: 'a.example.com',
        nodeName: 'n',
        pool: { name: 'p', resourceSliceCount: 1 },
        devices: [{ name: 'd', attributes: { x: { int: 1 } }, capacity: { y: { value: '1Gi' } } }],
      },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'names that are wrong',
        { spec: { driver: 'A B', nodeName: 'A_', pool: { name: 'A_', resourceSliceCount: 0, generation: -1 } } },
      ],
      ['both places', { spec: { allNodes: true } }],
      ['no place', { spec: { nodeName: null } }],
      [
        'devices that are wrong',
        {
          spec: {
            devices: [
              { name: 'A_' },
              { name: 'd', attributes: { x: {}, 'a b': { int: 1, bool: true }, v: { version: 'x' } } },
              { name: 'd' },
            ],
          },
        },
      ],
    ],
    updates: [
      ['the driver', { spec: { driver: 'b.example.com' } }],
      ['the node', { spec: { nodeName: 'm' } }],
      ['the pool', { spec: { pool: { generation: 2 } } }],
    ],
  }),
]
