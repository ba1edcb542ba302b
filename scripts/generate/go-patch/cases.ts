// Prints the strategic merge patches that main.go applies: cases by hand for every directive, then random cases, which
// are the same each time.

interface Case {
  title: string
  kind: string
  original: unknown
  patch: unknown
}

const container = (name: string, extra: object = {}): object => ({ name, image: `${name}:1`, ...extra })
const deployment = (containers: object[], extra: object = {}): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', labels: { app: 'web', tier: 'front' }, finalizers: ['a/1', 'b/2', 'c/3'] },
  spec: {
    replicas: 2,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
    template: { spec: { containers } },
    ...extra,
  },
})
const podSpec = (spec: object): object => ({ spec: { template: { spec } } })
const abc = deployment([container('a'), container('b'), container('c')])

const written: Case[] = [
  { title: 'scalar', kind: 'Deployment', original: abc, patch: { spec: { replicas: 5 } } },
  {
    title: 'null deletes',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { replicas: null }, metadata: { labels: { tier: null } } },
  },
  {
    title: 'null of absent field',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { paused: null, selector: { matchLabels: { x: null, y: 'z' } } } },
  },
  {
    title: 'merge container by name',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ name: 'b', image: 'b:2' }] }),
  },
  { title: 'add container', kind: 'Deployment', original: abc, patch: podSpec({ containers: [container('d')] }) },
  {
    title: 'add and change',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [container('d'), { name: 'a', tty: true }] }),
  },
  {
    title: 'delete container',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ name: 'b', $patch: 'delete' }] }),
  },
  {
    title: 'delete and add again',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ name: 'b', $patch: 'delete' }, container('b', { tty: true })] }),
  },
  {
    title: 'delete unknown',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ name: 'zz', $patch: 'delete' }] }),
  },
  {
    title: 'replace list',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ $patch: 'replace' }, container('x')] }),
  },
  { title: 'replace map', kind: 'Deployment', original: abc, patch: podSpec({ $patch: 'replace', hostNetwork: true }) },
  { title: 'delete map', kind: 'Deployment', original: abc, patch: { spec: { template: { $patch: 'delete' } } } },
  {
    title: 'unknown directive',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { template: { $patch: 'explode' } } },
  },
  {
    title: 'unknown list directive',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ name: 'a', $patch: 'explode' }] }),
  },
  {
    title: 'merge directive in list',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ name: 'a', $patch: 'merge' }] }),
  },
  { title: 'no merge key', kind: 'Deployment', original: abc, patch: podSpec({ containers: [{ image: 'x' }] }) },
  {
    title: 'delete without merge key',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ containers: [{ $patch: 'delete' }] }),
  },
  { title: 'empty list merges to nothing', kind: 'Deployment', original: abc, patch: podSpec({ containers: [] }) },
  {
    title: 'order',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }],
      containers: [{ name: 'a', tty: true }],
    }),
  },
  {
    title: 'order only',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }, { name: 'a' }] }),
  },
  {
    title: 'order with deletion',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }],
      containers: [{ name: 'b', $patch: 'delete' }],
    }),
  },
  {
    title: 'order mismatch',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }],
      containers: [{ name: 'a' }, { name: 'c' }],
    }),
  },
  {
    title: 'order is no list',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ '$setElementOrder/containers': 'x' }),
  },
  {
    title: 'order of absent list',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({ '$setElementOrder/volumes': [{ name: 'v' }], volumes: [{ name: 'v', emptyDir: {} }] }),
  },
  {
    title: 'list of absent field with directives',
    kind: 'Deployment',
    original: abc,
    patch: podSpec({
      volumes: [
        { name: 'v', $patch: 'delete' },
        { name: 'w', emptyDir: {} },
      ],
    }),
  },
  { title: 'finalizers merge', kind: 'Deployment', original: abc, patch: { metadata: { finalizers: ['c/3', 'd/4'] } } },
  {
    title: 'finalizers delete',
    kind: 'Deployment',
    original: abc,
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['b/2'] } },
  },
  {
    title: 'finalizers delete and order',
    kind: 'Deployment',
    original: abc,
    patch: {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['b/2'],
        '$setElementOrder/finalizers': ['d/4', 'c/3', 'a/1'],
        finalizers: ['d/4'],
      },
    },
  },
  {
    title: 'delete from absent list',
    kind: 'Deployment',
    original: { metadata: {} },
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['b/2'] } },
  },
  {
    title: 'bad delete list key',
    kind: 'Deployment',
    original: abc,
    patch: { metadata: { $deleteFromPrimitiveListfinalizers: ['b/2'] } },
  },
  {
    title: 'bad order key',
    kind: 'Deployment',
    original: abc,
    patch: { metadata: { $setElementOrderfinalizers: ['b/2'] } },
  },
  {
    title: 'retainKeys',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
  },
  {
    title: 'retainKeys must name all',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate', rollingUpdate: {} } } },
  },
  {
    title: 'retainKeys is no list',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { strategy: { $retainKeys: 'type', type: 'Recreate' } } },
  },
  {
    title: 'retainKeys with null',
    kind: 'Deployment',
    original: abc,
    patch: { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate', rollingUpdate: null } } },
  },
  {
    title: 'atomic list',
    kind: 'Deployment',
    original: deployment([container('a', { args: ['x', 'y'], command: ['c'] })]),
    patch: podSpec({ containers: [{ name: 'a', args: ['z'] }] }),
  },
  {
    title: 'env merge',
    kind: 'Deployment',
    original: deployment([
      container('a', {
        env: [
          { name: 'X', value: '1' },
          { name: 'Y', value: '2' },
        ],
      }),
    ]),
    patch: podSpec({
      containers: [
        {
          name: 'a',
          env: [
            { name: 'Y', value: null, valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'Z', value: '3' },
          ],
        },
      ],
    }),
  },
  {
    title: 'ports by containerPort',
    kind: 'Pod',
    original: { spec: { containers: [container('a', { ports: [{ containerPort: 80 }, { containerPort: 81 }] })] } },
    patch: { spec: { containers: [{ name: 'a', ports: [{ containerPort: 81, name: 'x' }, { containerPort: 82 }] }] } },
  },
  {
    title: 'ports with the same key twice',
    kind: 'Service',
    original: {
      spec: {
        ports: [
          { port: 53, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
      },
    },
    patch: { spec: { ports: [{ port: 53, name: 'dns' }] } },
  },
  {
    title: 'pull secrets',
    kind: 'ServiceAccount',
    original: { secrets: [{ name: 'a' }, { name: 'b' }] },
    patch: { secrets: [{ name: 'b', $patch: 'delete' }, { name: 'c' }], imagePullSecrets: [{ name: 'p' }] },
  },
  {
    title: 'map of strings',
    kind: 'ConfigMap',
    original: { data: { a: '1', b: '2' } },
    patch: { data: { b: null, c: '3' } },
  },
  {
    title: 'map replaced',
    kind: 'ConfigMap',
    original: { data: { a: '1', b: '2' } },
    patch: { data: { $patch: 'replace', c: '3' } },
  },
  {
    title: 'retainKeys of volumes',
    kind: 'Pod',
    original: { spec: { volumes: [{ name: 'v', emptyDir: {} }] } },
    patch: { spec: { volumes: [{ name: 'v', $retainKeys: ['name', 'configMap'], configMap: { name: 'c' } }] } },
  },
  {
    title: 'type changes',
    kind: 'Pod',
    original: { spec: { volumes: null, nodeName: 'x' } },
    patch: { spec: { volumes: [{ name: 'v', $patch: 'delete' }], nodeName: { a: null, b: 1 } } },
  },
  { title: 'mixed items', kind: 'Deployment', original: abc, patch: { metadata: { finalizers: ['x', 3] } } },
  { title: 'list of lists', kind: 'Deployment', original: abc, patch: { metadata: { finalizers: [['x']] } } },
  {
    title: 'owner references by uid',
    kind: 'Pod',
    original: {
      metadata: {
        ownerReferences: [
          { uid: '1', name: 'a' },
          { uid: '2', name: 'b' },
        ],
      },
    },
    patch: {
      metadata: {
        ownerReferences: [
          { uid: '1', $patch: 'delete' },
          { uid: '3', name: 'c' },
        ],
      },
    },
  },
  {
    title: 'conditions by type',
    kind: 'Pod',
    original: {
      status: {
        conditions: [
          { type: 'Ready', status: 'False' },
          { type: 'Other', status: 'True' },
        ],
      },
    },
    patch: {
      status: { '$setElementOrder/conditions': [{ type: 'Ready' }], conditions: [{ type: 'Ready', status: 'True' }] },
    },
  },
  {
    title: 'tolerations are atomic',
    kind: 'Pod',
    original: { spec: { tolerations: [{ key: 'a' }] } },
    patch: { spec: { tolerations: [{ key: 'b' }] } },
  },
]

/** A random generator with a fixed seed: the same cases every time. */
function generator(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function randomCase(index: number): Case {
  const pick = generator(index * 7919 + 17)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const some = (): string[] => names.filter(() => pick(2) === 0)
  const shuffled = (list: string[]): string[] => {
    const out = [...list]
    for (let i = out.length - 1; i > 0; i--) {
      const j = pick(i + 1)
      ;[out[i], out[j]] = [out[j] ?? '', out[i] ?? '']
    }
    return out
  }
  const originalNames = shuffled(some())
  const order = shuffled([...new Set([...some(), ...some()])])
  const changed = order.filter(() => pick(2) === 0)
  const deleted = names.filter((name) => !order.includes(name) && pick(2) === 0)
  const containers = changed.map((name) => {
    const value = pick(3)
    return value === 0
      ? { name, image: null }
      : { name, image: `${name}:${String(value)}`, env: changed.map((env) => ({ name: env, value: 'x' })) }
  })
  const directives = deleted.map((name) => ({ name, $patch: 'delete' }))
  const spec: Record<string, unknown> = {
    containers: pick(2) === 0 ? [...containers, ...directives] : [...directives, ...containers],
  }
  const meta: Record<string, unknown> = {}
  if (pick(3) > 0) spec['$setElementOrder/containers'] = order.map((name) => ({ name }))
  if (pick(3) > 0) {
    meta['finalizers'] = changed
    if (pick(2) === 0) meta['$setElementOrder/finalizers'] = order
    if (pick(2) === 0) meta['$deleteFromPrimitiveList/finalizers'] = deleted
  }
  const original: Record<string, unknown> = {
    metadata: pick(5) === 0 ? {} : { finalizers: shuffled(some()) },
    spec:
      pick(6) === 0
        ? {}
        : {
            containers: originalNames.map((name) =>
              container(name, { env: originalNames.map((env) => ({ name: env, value: 'o' })) }),
            ),
          },
  }
  return { title: `random ${String(index)}`, kind: 'Pod', original, patch: { metadata: meta, spec } }
}

const random = Array.from({ length: 150 }, (_, index) => randomCase(index))
console.log(JSON.stringify([...written, ...random]))
