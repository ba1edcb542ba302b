// Odd values in objects that are written to both servers: quantities, keys that JavaScript takes for its own, YAML,
// formats, time zones.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { install, objectsPath, sampleObject } from '#test/parity/crds/sample-crd.ts'
import type { Dice } from '#test/parity/generated/dice.ts'
import { diceOf } from '#test/parity/generated/dice.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Manifest, Session } from '#test/parity/support/session.ts'

const ownKeys = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'prototype',
  '__defineGetter__',
  'length',
] as const
/** Of these, the valid names of labels. */
const labelKeys = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype', 'length'] as const

/**
 * Like Object.fromEntries, whose result has no setter of `__proto__` either; as text, because a body is sent as it is.
 */
const mapOf = (keys: readonly string[], value: JsonValue): JsonObject =>
  JSON.parse(`{${keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`) as JsonObject

async function keysOf(
  session: Session,
  path: string,
  object: Manifest,
  field: string,
  value: JsonValue,
): Promise<void> {
  const collection = path.slice(0, path.lastIndexOf('/'))
  const text = (members: JsonObject): string => JSON.stringify(members)
  await session.send('POST', collection, { body: { ...object, [field]: mapOf(ownKeys, value) } })
  await session.get(path)
  for (const key of ownKeys) {
    await session.patch(path, text({ [field]: mapOf([key], null) }), 'merge')
    await session.patch(path, text({ [field]: mapOf([key], value) }), 'merge')
    await session.patch(
      path,
      [
        { op: 'test', path: `/${field}/${key}`, value },
        { op: 'remove', path: `/${field}/${key}` },
      ],
      'json',
    )
    // A real server does not say why it refuses this patch.
    await session.patch(path, [{ op: 'remove', path: `/${field}/${key}` }], 'json', { without: ['details'] })
    await session.patch(path, [{ op: 'add', path: `/${field}/${key}`, value }], 'json')
  }
  const applied = { ...object, [field]: mapOf(ownKeys.slice(0, 4), value) }
  await session.patch(`${path}?fieldManager=one`, text(applied), 'apply')
  await session.patch(`${path}?fieldManager=two`, text({ ...object, [field]: mapOf(ownKeys, 'b3RoZXI=') }), 'apply')
  await session.patch(
    `${path}?fieldManager=two&force=true`,
    text({ ...object, [field]: mapOf(ownKeys, 'b3RoZXI=') }),
    'apply',
  )
  await session.patch(
    `${path}?fieldManager=two`,
    text({ ...object, [field]: mapOf(ownKeys.slice(0, 1), 'b3RoZXI=') }),
    'apply',
  )
  await session.get(path)
}

const base = '/api/v1/namespaces/$NS'
const meta = (name: string): JsonObject => ({ name })

const keyRows: readonly Row[] = [
  row('keys of JavaScript objects in a Secret', (session) =>
    keysOf(
      session,
      `${base}/secrets/odd`,
      { apiVersion: 'v1', kind: 'Secret', metadata: meta('odd') },
      'data',
      'dmFsdWU=',
    ),
  ),
  row('keys of JavaScript objects in a ConfigMap', (session) =>
    keysOf(
      session,
      `${base}/configmaps/odd`,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta('odd') },
      'data',
      'value',
    ),
  ),
  row('keys of JavaScript objects in stringData', async (session) => {
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: meta('text'), stringData: mapOf(ownKeys, 'x') }
    await session.send('POST', `${base}/secrets`, { body })
  }),
  row('keys of JavaScript objects in a custom resource', async (session) => {
    const schema = {
      type: 'object',
      properties: { data: { type: 'object', additionalProperties: { type: 'string' } } },
    }
    await install(session, { word: 'odd', schema })
    const object = sampleObject('odd', 'one') as unknown as Manifest
    await keysOf(session, objectsPath('odd', 'one'), object, 'data', 'value')
  }),
  row('keys of JavaScript objects without a schema', async (session) => {
    await install(session, { word: 'any' })
    await keysOf(session, objectsPath('any', 'one'), sampleObject('any', 'one') as unknown as Manifest, 'data', 'value')
  }),
  row('properties of a schema named as those of JavaScript objects', async (session) => {
    const properties = mapOf(ownKeys, { type: 'string', default: 'd' })
    await install(session, {
      word: 'named',
      schema: { type: 'object', properties: { data: { type: 'object', properties } } },
    })
    const path = objectsPath('named', 'one')
    await session.send('POST', objectsPath('named'), { body: sampleObject('named', 'one', { data: {} }) })
    await session.patch(path, JSON.stringify({ data: mapOf(ownKeys, 'y') }), 'merge')
    await session.patch(path, JSON.stringify({ data: mapOf(['__lookupGetter__', 'isPrototypeOf'], 'y') }), 'merge')
    await session.get(path)
  }),
  row('labels and selectors named as members of JavaScript objects', async (session) => {
    for (const [name, labels] of [
      ['plain', { test: 'labels' }],
      ['full', { test: 'labels', ...mapOf(labelKeys, 'x') }],
    ] as const)
      await session.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `labels-${name}`, labels } })
    const selectors = labelKeys.flatMap((key) => [key, `!${key}`, `${key}=x`, `${key}!=x`, `${key} notin (x)`])
    for (const selector of selectors)
      await session.get(`${base}/configmaps?labelSelector=${encodeURIComponent(`${selector},test=labels`)}`)
    for (const key of ['__proto__', 'constructor'])
      await session.patch(
        `${base}/configmaps/labels-plain`,
        `{"metadata":{"labels":{"${key}":"y"},"annotations":{"${key}":"y"}}}`,
        'merge',
      )
    for (const kind of ['pods', 'secrets'])
      for (const field of ['constructor', 'toString', '__proto__'])
        await session.get(`${base}/${kind}?fieldSelector=${field}%3Dx`)
    await session.get(`${base}/configmaps/constructor`)
    await session.get('/apis/constructor/v1')
    await session.get('/api/v1/constructor')
    await session.get(`${base}/toString`)
  }),
]

const suffixes = ['', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'Ti', 'e3', 'e-3', 'n', 'u', 'Ei', 'E'] as const
const amount = (dice: Dice): string =>
  `${dice.below(3000)}${dice.once(2) ? `.${dice.below(10_000)}` : ''}${dice.pick(suffixes)}`

function pod(name: string, dice: Dice): Manifest {
  const resources = (): JsonObject => ({
    requests: { cpu: amount(dice), memory: amount(dice), 'ephemeral-storage': amount(dice) },
    limits: { ...(dice.once(2) ? { memory: amount(dice) } : {}), 'example.com/gpu': String(dice.below(3)) },
  })
  const containers = ['a', 'b'].map((one) => ({ name: one, image: 'i', resources: resources() }))
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, overhead: { memory: amount(dice) } } }
}

function quantityRows(seed: number, count: number): readonly Row[] {
  const dry = { query: '?dryRun=All' }
  return [
    row('memory of 1.1Gi', async (session) => {
      const resources = { requests: { memory: '1.1Gi' } }
      const spec = { containers: [{ name: 'a', image: 'i', resources }] }
      await session.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'fraction' }, spec }, dry)
    }),
    row(`quantities in ${count} pods, quotas, ranges and claims`, async (session) => {
      for (let i = 0; i < count; i++) {
        const dice = diceOf(seed + i)
        const metadata = { name: `amounts-${i}` }
        await session.create(pod(`amounts-${i}`, dice), dry)
        const hard = { cpu: amount(dice), 'requests.memory': amount(dice), pods: String(dice.below(9)) }
        await session.create({ apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard } }, dry)
        const limits = [{ type: 'Container', max: { memory: amount(dice) }, default: { cpu: amount(dice) } }]
        await session.create({ apiVersion: 'v1', kind: 'LimitRange', metadata, spec: { limits } }, dry)
        const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: amount(dice) } } }
        await session.create({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec }, dry)
      }
    }),
  ]
}

const textRows: readonly Row[] = [
  row('YAML bodies', async (session) => {
    const bodies = [
      'defaultMode: 0o644',
      'defaultMode: 0644',
      'defaultMode: 420',
      'defaultMode: 0x1a4',
      'defaultMode: "0644"',
      'optional: yes',
      'optional: "yes"',
    ]
    for (const [i, line] of bodies.entries()) {
      const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: y${i}}\nspec:\n  containers: [{name: a, image: i}]\n  volumes:\n  - name: c\n    configMap:\n      name: c\n      ${line}\n`
      const headers = { 'content-type': 'application/yaml' }
      await session.send('POST', `${base}/pods?dryRun=All`, { body: text, headers, without: ['spec.volumes.1'] })
    }
  }),
  row('schedules and time zones of CronJobs', async (session) => {
    const template = {
      spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i' }] } } },
    }
    for (const [i, [schedule, timeZone]] of (
      [
        ['* * * * *', 'utc'],
        ['* * * * *', 'UTC'],
        ['* * * * *', 'europe/berlin'],
        ['* * * * *', 'Europe/Berlin'],
        ['* * * * *', 'PST'],
        ['* * * * *', 'local'],
        ['* * * * *', 'Local'],
        ['* * * * *', 'a..b'],
        ['@every 1d', 'UTC'],
        ['60 * * * *', 'UTC'],
        ['TZ=utc * * * * *', undefined],
      ] as const
    ).entries())
      await session.create(
        {
          ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: `cron-${i}` } },
          spec: { schedule, ...(timeZone === undefined ? {} : { timeZone }), jobTemplate: template },
        },
        { query: '?dryRun=All' },
      )
  }),
  row('formats of custom resources', async (session) => {
    const formats = [
      'cidr',
      'ipv4',
      'ipv6',
      'email',
      'uri',
      'hostname',
      'duration',
      'date-time',
      'byte',
      'uuid',
      'mac',
    ] as const
    const properties = Object.fromEntries(
      formats.map((format) => [format.replace('-', ''), { type: 'string', format }]),
    )
    const spec = { type: 'object', properties }
    await install(session, { word: 'form', schema: { type: 'object', properties: { spec } } })
    const values = [
      'fe80::1%eth0/64',
      'fe80::1/64',
      '1.2.3.4',
      'a@b',
      '"a b"@c.d',
      'http://a:x/',
      '/a',
      'x.y',
      '5 days',
      '2024-01-01T00:00:00Z',
      'YQ==',
      '*',
    ]
    for (const [i, value] of values.entries())
      for (const format of formats) {
        const body = sampleObject('form', `f${i}-${format}`, { spec: { [format.replace('-', '')]: value } })
        await session.send('POST', `${objectsPath('form')}?dryRun=All`, { body })
      }
  }),
]

export function writtenRows(seed: number, count: number): readonly Row[] {
  return [...keyRows, ...quantityRows(seed, count), ...textRows]
}
