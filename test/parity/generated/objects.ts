// Random objects of built-in kinds and of a custom one, each a choice of the same few fields, so that writers meet.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import type { Dice } from './dice.ts'

/**
 * A kind, and how an object of it is written at random. `make` gives the members other than kind, apiVersion and name.
 */
export interface RandomKind {
  readonly apiVersion: string
  readonly kind: string
  /** Path of the collection in the namespace of the session. */
  readonly collection: string
  readonly make: (dice: Dice) => JsonObject
  /** Paths of JSON patches. */
  readonly pointers: readonly [string, ...string[]]
  readonly isCustom?: boolean
}

const words = ['one', 'two', 'three'] as const
const letters = ['a', 'b', 'c', 'd'] as const

const mapOf = (dice: Dice): JsonObject => Object.fromEntries(dice.some(letters).map((key) => [key, dice.pick(words)]))
/** Present half of the time. */
const maybe = (dice: Dice, name: string, value: () => JsonValue): JsonObject =>
  dice.once(2) ? { [name]: value() } : {}

function metadataOf(dice: Dice): JsonObject {
  return { ...maybe(dice, 'labels', () => mapOf(dice)), ...maybe(dice, 'annotations', () => mapOf(dice)) }
}

const configMap = (dice: Dice): JsonObject => ({
  metadata: metadataOf(dice),
  ...maybe(dice, 'data', () => mapOf(dice)),
  ...(dice.once(5) ? { binaryData: { z: 'YWJj' } } : {}),
})

function containerOf(dice: Dice, name: string): JsonObject {
  return {
    name,
    image: `nginx:${dice.below(2)}`,
    ...maybe(dice, 'env', () => dice.some(letters).map((key) => ({ name: key, value: dice.pick(words) }))),
    ...maybe(dice, 'args', () => dice.some(words)),
    ...maybe(dice, 'ports', () =>
      dice.some([80, 81]).map((containerPort) => ({
        containerPort,
        ...(dice.once(3) ? { protocol: dice.pick(['TCP', 'UDP']) } : {}),
        ...maybe(dice, 'name', () => `p${containerPort}`),
      })),
    ),
    ...maybe(dice, 'resources', () => ({ limits: { cpu: dice.pick<number | string>(['1', '1000m', 2, '0.5']) } })),
  }
}

const podSpec = (dice: Dice): JsonObject => ({
  containers: [containerOf(dice, 'main'), ...dice.some(['left', 'right']).map((name) => containerOf(dice, name))],
  ...maybe(dice, 'nodeSelector', () => mapOf(dice)),
  ...maybe(dice, 'volumes', () => dice.some(letters).map((name) => ({ name, emptyDir: {} }))),
  ...maybe(dice, 'tolerations', () => dice.some(letters).map((key) => ({ key, operator: 'Exists' }))),
  ...maybe(dice, 'terminationGracePeriodSeconds', () => dice.below(100)),
})

const deployment = (dice: Dice): JsonObject => ({
  metadata: metadataOf(dice),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web', ...mapOf(dice) } }, spec: podSpec(dice) },
    ...maybe(dice, 'replicas', () => dice.below(3)),
    ...maybe(dice, 'paused', () => dice.once(2)),
    ...maybe(dice, 'strategy', () =>
      dice.once(2) ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxSurge: dice.below(2) } },
    ),
  },
})

const service = (dice: Dice): JsonObject => ({
  metadata: metadataOf(dice),
  spec: {
    clusterIP: 'None',
    ...maybe(dice, 'selector', () => mapOf(dice)),
    ports: [80, ...dice.some([81, 82])].map((port) => ({
      port,
      name: `p${port}`,
      ...maybe(dice, 'targetPort', () => dice.pick<number | string>([8080, 'http'])),
      ...(dice.once(3) ? { protocol: dice.pick(['TCP', 'UDP']) } : {}),
    })),
    ...maybe(dice, 'sessionAffinity', () => dice.pick(['None', 'ClientIP'])),
  },
})

const role = (dice: Dice): JsonObject => ({
  metadata: metadataOf(dice),
  rules: dice.some(words).map((resource) => ({ apiGroups: [''], resources: [resource], verbs: dice.some(letters) })),
})

/** The group of the custom kind. */
export const customGroup = 'made.$ID.example.com'
const text: JsonObject = { type: 'string' }

/** The schema of the custom kind: every type of list and map, defaults, unknown fields, CEL. */
export const customSchema: JsonObject = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        color: { ...text, default: 'red' },
        size: { type: 'integer', minimum: 0 },
        map: { type: 'object', additionalProperties: text },
        atomicMap: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
        list: { type: 'array', maxItems: 10, items: text },
        set: { type: 'array', maxItems: 10, 'x-kubernetes-list-type': 'set', items: text },
        items: {
          type: 'array',
          maxItems: 10,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name', 'port'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: text, port: { type: 'integer', default: 80 }, value: text },
          },
        },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        amount: { 'x-kubernetes-int-or-string': true },
        nullable: { ...text, nullable: true },
      },
      'x-kubernetes-validations': [
        { rule: '!has(self.size) || !has(oldSelf.size) || self.size >= oldSelf.size', message: 'only grows' },
        { rule: "!has(self.set) || !('d' in self.set)", fieldPath: '.set', reason: 'FieldValueForbidden' },
      ],
    },
  },
}

const custom = (dice: Dice): JsonObject => ({
  metadata: metadataOf(dice),
  spec: {
    ...maybe(dice, 'color', () => dice.pick(words)),
    ...maybe(dice, 'size', () => dice.below(4) - (dice.once(10) ? 5 : 0)),
    ...maybe(dice, 'map', () => mapOf(dice)),
    ...maybe(dice, 'atomicMap', () => mapOf(dice)),
    ...maybe(dice, 'list', () => dice.some(words)),
    ...maybe(dice, 'set', () => dice.some(letters)),
    ...maybe(dice, 'items', () =>
      dice.some(words).map((name) => ({
        name,
        ...maybe(dice, 'port', () => 80 + dice.below(2)),
        ...maybe(dice, 'value', () => dice.pick(letters)),
      })),
    ),
    ...maybe(dice, 'free', () => ({ ...mapOf(dice), list: [1, { b: mapOf(dice) }] })),
    ...maybe(dice, 'amount', () => dice.pick<number | string>([1, '50%'])),
    ...(dice.once(6) ? { nullable: null } : {}),
    ...(dice.once(8) ? { unknown: mapOf(dice) } : {}),
  },
})

const metadataPointers = ['/metadata/labels', '/metadata/labels/a', '/metadata/annotations', '/metadata/annotations/b']

export const randomKinds: readonly [RandomKind, ...RandomKind[]] = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    collection: '/api/v1/namespaces/$NS/configmaps',
    make: configMap,
    pointers: ['/data', '/data/a', '/data/b', ...metadataPointers],
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    collection: '/apis/apps/v1/namespaces/$NS/deployments',
    make: deployment,
    pointers: [
      ...(['/spec/replicas', '/spec/strategy', '/spec/template/spec/containers/0/env'] as const),
      ...['/spec/template/spec/containers/1', '/spec/template/spec/containers/0/ports', ...metadataPointers],
      ...['/spec/template/spec/nodeSelector', '/spec/template/spec/volumes/0'],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    collection: '/api/v1/namespaces/$NS/services',
    make: service,
    pointers: ['/spec/selector', '/spec/ports/0/port', '/spec/ports/1', '/spec/sessionAffinity', ...metadataPointers],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    collection: '/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/roles',
    make: role,
    pointers: ['/rules', '/rules/0', '/rules/1/verbs', ...metadataPointers],
  },
  {
    apiVersion: `${customGroup}/v1`,
    kind: 'Made',
    collection: `/apis/${customGroup}/v1/namespaces/$NS/mades`,
    make: custom,
    pointers: ['/spec', '/spec/items', '/spec/items/0', '/spec/set', '/spec/map/a', '/spec/free/b', '/spec/size'],
    isCustom: true,
  },
]
