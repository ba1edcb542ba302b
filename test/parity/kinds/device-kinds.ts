// resource.k8s.io.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { type Change, kindRows } from './kind-table.ts'

const labels = { app: 'web' }
const meta = { labels }
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })
const config = (parameters: JsonValue): JsonObject => ({ opaque: { driver: 'a.example.com', parameters } })
const device = { exactly: { deviceClassName: 'x.example.com' } }

const alternative = (name: string): JsonObject => ({ name, deviceClassName: 'x.example.com' })
const many = (count: number, make: (name: string) => JsonObject): JsonObject[] =>
  Array.from({ length: count }, (_, index) => make(`n${index}`))
const term = { matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }
const result = { request: 'r', driver: 'a.example.com', pool: 'p', device: 'd' }
const told = { driver: 'a.example.com', pool: 'p', device: 'd' }
const condition = { type: 'Ready', status: 'True', reason: 'R', lastTransitionTime: '2020-01-01T00:00:00Z' }

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
      ['invalid config', { spec: { config: [{}, { opaque: { driver: 'A B', parameters: null } }] } }],
      ['an invalid selector', { spec: { selectors: [{}] } }],
      ['a selector', { spec: { selectors: [{ cel: { expression: 'device.driver == "a"' } }] } }],
      ...[
        'device.attributes["a.example.com"].size == 1',
        'device.attributes["a.example.com"].name.startsWith("a") && device.capacity["a"].memory.isGreaterThan(quantity("1Gi"))',
        'cel.bind(a, device.attributes["a"], a.b && a.c)',
        'device.nothing == 1',
        'device.driver',
        'device.attributes["a"].b',
        'device.attributes',
        '"a".matches("[")',
        'device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a == b && c == d))))',
        'device.attributes["a"].all(x, device.attributes["a"][x].matches("a+b")) && device.capacity.all(a, a == "")',
        'device.allowMultipleAllocations',
        'lists.range(3).size() == 3',
      ].map((expression): Change => [`the selector ${expression}`, { spec: { selectors: [{ cel: { expression } }] } }]),
      ['a selector that is no CEL', { spec: { selectors: [{ cel: { expression: 'device.driver ==' } }] } }],
      ['a selector that is too long', { spec: { selectors: [{ cel: { expression: ' '.repeat(10_241) } }] } }],
      ['too many selectors', { spec: { selectors: Array.from({ length: 33 }, () => ({})) } }],
      ['config that is not an object', { spec: { config: [config('x'), config([1]), config({}), config(true)] } }],
      ['config that is too large', { spec: { config: [config({ x: 'y'.repeat(10_240) })] } }],
      ['config of a driver in capitals', { spec: { config: [{ opaque: { driver: 'A.B', parameters: {} } }] } }],
      [
        'config of a driver with a long name',
        { spec: { config: [{ opaque: { driver: 'a'.repeat(64), parameters: {} } }] } },
      ],
      ['too much config', { spec: { config: Array.from({ length: 33 }, () => config({})) } }],
      ['an extended resource', { spec: { extendedResourceName: 'x y' } }],
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
        'invalid requests',
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
      [
        'both kinds of requests',
        { spec: { devices: { requests: [{ name: 'r', ...device, firstAvailable: [alternative('a')] }] } } },
      ],
      [
        'alternatives',
        {
          spec: {
            devices: {
              requests: [{ name: 'r', firstAvailable: [alternative('a'), alternative('b')] }],
              constraints: [
                { requests: ['r'], matchAttribute: 'a.example.com/x' },
                { requests: ['r/a', 'r/b'], matchAttribute: 'a.example.com/y' },
              ],
              config: [{ requests: ['r/b'], ...config({ x: 1 }) }],
            },
          },
        },
      ],
      [
        'too many alternatives',
        { spec: { devices: { requests: [{ name: 'r', firstAvailable: many(9, alternative) }] } } },
      ],
      ['too many requests', { spec: { devices: { requests: many(33, (name) => ({ name, ...device })) } } }],
      [
        'invalid references',
        {
          spec: {
            devices: {
              constraints: [{ requests: ['r', 'r', 'r/a', 'A_', 'a/b/c', ''], matchAttribute: 'a.example.com/x' }],
              config: [{ requests: ['x'] }, { requests: ['r', 'r'], ...config(null) }],
            },
          },
        },
      ],
      [
        'invalid attributes',
        {
          spec: {
            devices: {
              constraints: ['', '/x', 'a/', 'A.B/x', 'a_/x', 'a/b/c', `a/${'x'.repeat(33)}`, 'a/1'].map(
                (matchAttribute) => ({ matchAttribute }),
              ),
            },
          },
        },
      ],
      [
        'tolerations',
        {
          spec: {
            devices: {
              requests: [
                {
                  name: 'r',
                  exactly: {
                    ...device.exactly,
                    tolerations: [
                      { key: 'a.b/c', value: 'd', effect: 'NoExecute', tolerationSeconds: 5 },
                      { operator: 'Exists' },
                    ],
                  },
                },
              ],
            },
          },
        },
      ],
      [
        'invalid tolerations',
        {
          spec: {
            devices: {
              requests: [
                {
                  name: 'r',
                  exactly: {
                    ...device.exactly,
                    tolerations: [
                      { key: 'a b', operator: 'Huh', effect: 'Huh' },
                      { key: 'a', operator: 'Exists', value: 'x' },
                      { key: 'a', value: 'x y' },
                    ],
                  },
                },
              ],
            },
          },
        },
      ],
      [
        'distinct attributes',
        { spec: { devices: { constraints: [{ distinctAttribute: 'a.b/d' }, { distinctAttribute: 'a' }] } } },
      ],
      [
        'fields behind disabled feature gates',
        {
          spec: {
            devices: {
              requests: [{ name: 'r', exactly: { ...device.exactly, capacity: { requests: { 'a.b/c': '1' } } } }],
              constraints: [{ matchAttribute: 'a.b/c', distinctAttribute: 'a.b/d' }],
            },
          },
        },
      ],
      [
        'a negative count',
        { spec: { devices: { requests: [{ name: 'r', exactly: { ...device.exactly, count: -1 } }] } } },
      ],
      [
        'all devices',
        { spec: { devices: { requests: [{ name: 'r', exactly: { ...device.exactly, allocationMode: 'All' } }] } } },
      ],
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
      ['status', 'allocated again', { status: { allocation: { devices: { results: [{ ...result, device: 'e' }] } } } }],
      [
        'status',
        'reserved without a consumer',
        {
          status: {
            reservedFor: [{}, { resource: 'pods', name: 'x', uid: 'y' }, { resource: 'pods', name: 'z', uid: 'y' }],
          },
        },
      ],
      [
        'status',
        'devices',
        {
          status: {
            devices: [
              {
                ...told,
                conditions: [condition],
                data: { x: 1 },
                networkData: {
                  interfaceName: 'eth0',
                  ips: ['10.1.2.3/24', '2001:db8::1/64'],
                  hardwareAddress: 'aa:bb',
                },
              },
            ],
          },
        },
      ],
      [
        'status',
        'invalid devices',
        {
          status: {
            devices: [
              {
                ...told,
                conditions: [condition, condition, { type: 'a b', status: 'x', reason: 'x y' }],
                data: [1],
                networkData: {
                  interfaceName: 'x'.repeat(257),
                  hardwareAddress: 'y'.repeat(129),
                  ips: ['10.1.2.3', '10.1.2.3/24', '10.1.2.3/24', '2001:DB8::1/64', 'x/24', '10.0.0.1/33'],
                },
              },
              { driver: '', pool: '', device: '' },
            ],
          },
        },
      ],
      ['status', 'released', { status: { allocation: null, reservedFor: null } }],
      [
        'status',
        'allocated wrongly',
        {
          status: {
            allocation: {
              devices: {
                results: [
                  { request: 'x', driver: 'A_', pool: 'p_', device: 'D' },
                  { request: '', driver: '', pool: '', device: '' },
                  { ...result, shareID: 'x', bindingConditions: ['a b'] },
                ],
                config: [
                  { source: 'Huh', requests: ['x'] },
                  { requests: ['r', 'r'], ...config({}) },
                ],
              },
              nodeSelector: { nodeSelectorTerms: [] },
            },
          },
        },
      ],
      [
        'status',
        'allocated with config',
        {
          status: {
            allocation: {
              devices: { results: [result], config: [{ source: 'FromClass', requests: ['r'], ...config({ a: 1 }) }] },
              nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }] },
            },
          },
        },
      ],
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
      ['invalid labels', { spec: { metadata: { labels: { 'a b': 'c' } } } }],
      ['invalid annotations', { spec: { metadata: { annotations: { 'A b': 'c', 'A.b/c': 'd' } } } }],
      ['a name', { spec: { metadata: { name: 'x', finalizers: ['a.b/c'] } } }],
      ['invalid requests', { spec: { spec: { devices: { requests: [{ name: 'A_' }] } } } }],
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
        'invalid names',
        { spec: { driver: 'A B', nodeName: 'A_', pool: { name: 'A_', resourceSliceCount: 0, generation: -1 } } },
      ],
      ['both places', { spec: { allNodes: true } }],
      ['no place', { spec: { nodeName: null } }],
      ['all nodes', { spec: { nodeName: null, allNodes: true } }],
      ['no nodes', { spec: { allNodes: false } }],
      ['an empty node', { spec: { nodeName: '' } }],
      ['a selector of nodes', { spec: { nodeName: null, nodeSelector: { nodeSelectorTerms: [term] } } }],
      ['two terms of nodes', { spec: { nodeName: null, nodeSelector: { nodeSelectorTerms: [term, term] } } }],
      ['no terms of nodes', { spec: { nodeName: null, nodeSelector: { nodeSelectorTerms: [] } } }],
      ['a pool of a path', { spec: { pool: { name: 'a.b/c/d' } } }],
      ['a pool of a long name', { spec: { pool: { name: 'a'.repeat(254) } } }],
      ['too many devices', { spec: { devices: many(129, (name) => ({ name })) } }],
      [
        'attributes',
        {
          spec: {
            devices: [
              {
                name: 'd',
                attributes: {
                  'a.example.com/i': { int: 0 },
                  b: { bool: false },
                  s: { string: '' },
                  v: { version: '1.2.3-alpha.1+build.5' },
                },
                capacity: { 'A.example.com/memory': { value: '1Gi' } },
              },
            ],
          },
        },
      ],
      [
        'invalid attributes',
        {
          spec: {
            devices: [
              {
                name: 'd',
                attributes: {
                  '': { int: 1 },
                  '/x': { int: 1 },
                  'a/': { int: 1 },
                  'a_/b': { int: 1 },
                  [`a/${'x'.repeat(200)}`]: { int: 1 },
                  s: { string: 'x'.repeat(65) },
                  v: { version: '01.2.3' },
                  w: { version: `1.2.3-${'x'.repeat(64)}` },
                },
                capacity: { 'b c': { value: '1' } },
              },
            ],
          },
        },
      ],
      [
        'too many attributes',
        {
          spec: {
            devices: [
              {
                name: 'd',
                attributes: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`a${i}`, { int: i }])),
              },
            ],
          },
        },
      ],
      [
        'fields behind disabled feature gates',
        {
          spec: {
            sharedCounters: [{ name: 'A_' }],
            devices: [
              {
                name: 'd',
                taints: [{ key: 'a b', effect: 'x' }],
                allNodes: true,
                consumesCounters: [{ counterSet: 'x' }],
                bindsToNode: true,
                bindingConditions: ['a b'],
                allowMultipleAllocations: true,
                capacity: { y: { value: '1Gi', requestPolicy: { default: '2Gi' } } },
              },
            ],
          },
        },
      ],
      [
        'invalid devices',
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
      ['the devices', { spec: { devices: [{ name: 'e' }] } }],
      ['the name of the pool', { spec: { pool: { name: 'q' } } }],
      ['the driver', { spec: { driver: 'b.example.com' } }],
      ['the node', { spec: { nodeName: 'm' } }],
      ['the pool', { spec: { pool: { generation: 2 } } }],
    ],
  }),
]
