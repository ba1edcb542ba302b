// Valid and invalid CustomResourceDefinitions, and the answers of a server.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { crdsPath, sampleCrd, type SampleCrd } from './sample-crd.ts'

const text = { type: 'string' }
const object = (properties: JsonObject): JsonObject => ({ type: 'object', properties })
const spec = (properties: JsonObject): JsonObject => object({ spec: object(properties) })
const version = (name: string, rest: JsonObject = {}): JsonObject => ({
  ...{ name, served: true, storage: false, schema: { openAPIV3Schema: { type: 'object' } } },
  ...rest,
})
const hook = (rest: JsonObject): JsonObject => ({ conversion: { strategy: 'Webhook', webhook: rest } })

/**
 * Fields that controllers of a real server set a moment later, and ours within the write; the row "plain" compares
 * them.
 */
const settled = ['status', 'metadata.finalizers']

/** Accepted or refused, according to a dry run, so that nothing is created. */
const samples: readonly (SampleCrd & { readonly about: string })[] = [
  { about: 'plain', word: 'plain' },
  { about: 'a name that is not plural.group', word: 'misnamed', metadata: { name: 'other.example.com' } },
  { about: 'no name at all', word: 'nameless', metadata: { name: '' } },
  { about: 'a group without a dot', word: 'dotless', spec: { group: 'example' } },
  { about: 'no group', word: 'groupless', spec: { group: '' } },
  { about: 'a group with capitals', word: 'capital', spec: { group: 'Example.com' } },
  { about: 'an unknown scope', word: 'scoped', spec: { scope: 'Universe' } },
  { about: 'no scope', word: 'scopeless', spec: { scope: '' } },
  { about: 'no versions', word: 'versionless', versions: [] },
  { about: 'no schema', word: 'schemaless', version: { schema: null } },
  { about: 'an empty schema', word: 'emptyschema', version: { schema: {} } },
  { about: 'a schema without a type', word: 'typeless', schema: {} },
  { about: 'a schema for a list', word: 'listed', schema: { type: 'array', items: text } },
  { about: 'no storage version', word: 'unstored', version: { storage: false } },
  {
    about: 'two storage versions',
    word: 'twice',
    versions: [version('v1', { storage: true }), version('v2', { storage: true })],
  },
  {
    about: 'a version twice',
    word: 'again',
    versions: [version('v1', { storage: true }), version('v1', { schema: { openAPIV3Schema: { type: 'object' } } })],
  },
  { about: 'a version with a dot', word: 'dotted', version: { name: 'v1.0' } },
  { about: 'a version with capitals', word: 'upper', version: { name: 'V1' } },
  {
    about: 'two versions with different schemas',
    word: 'several',
    versions: [version('v1', { storage: true, schema: { openAPIV3Schema: spec({ a: text }) } }), version('v2')],
  },
  {
    about: 'two versions with equal everything',
    word: 'alike',
    versions: [
      version('v1', { storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: spec({ a: {} }) } }),
      version('v2', { subresources: { status: {} }, schema: { openAPIV3Schema: spec({ a: {} }) } }),
    ],
  },
  { about: 'preserveUnknownFields', word: 'preserving', spec: { preserveUnknownFields: true } },
  { about: 'preserveUnknownFields false', word: 'pruning', spec: { preserveUnknownFields: false } },
  { about: 'names with capitals', word: 'shouted', names: { singular: 'Shouted', shortNames: ['SH', ''] } },
  { about: 'a kind like its list', word: 'same', names: { listKind: 'Same' } },
  { about: 'a kind with a dash', word: 'dash', names: { kind: 'My-Kind_' } },
  { about: 'no kind', word: 'kindless', names: { kind: '' } },
  { about: 'without singular and listKind', word: 'default', names: { singular: '', listKind: '' } },
  { about: 'no plural', word: 'pluralless', names: { plural: '' } },
  { about: 'categories that are not valid names', word: 'category', names: { categories: ['All', 'ok', 'a b'] } },
  {
    about: 'a protected group',
    word: 'protected',
    spec: { group: 'things.k8s.io' },
    metadata: { name: 'protecteds.things.k8s.io' },
  },
  ...['unapproved, experimental', 'https://github.com/kubernetes/kubernetes/pull/1', 'maybe', 'ftp://', '/x'].map(
    (approval, index) => ({
      about: `a protected group with approval "${approval}"`,
      word: `approved${'abcde'.charAt(index)}`,
      spec: { group: 'things.kubernetes.io' },
      metadata: {
        name: `approved${'abcde'.charAt(index)}s.things.kubernetes.io`,
        annotations: { 'api-approved.kubernetes.io': approval },
      },
    }),
  ),
  { about: 'a deprecated version', word: 'deprecated', version: { deprecated: true } },
  { about: 'a warning without deprecation', word: 'warned', version: { deprecationWarning: 'soon gone' } },
  { about: 'an empty warning', word: 'silent', version: { deprecated: true, deprecationWarning: '' } },
  { about: 'a long warning', word: 'wordy', version: { deprecated: true, deprecationWarning: 'x'.repeat(257) } },
  { about: 'a warning with a newline', word: 'broken', version: { deprecated: true, deprecationWarning: 'a\nb' } },
  {
    about: 'invalid columns of every kind',
    word: 'columned',
    version: {
      additionalPrinterColumns: [
        { name: '', type: 'string', jsonPath: '.spec.a' },
        { name: 'A', type: 'text', jsonPath: 'spec.a' },
        { name: 'B', type: '', jsonPath: '' },
        { name: 'C', type: 'string', format: 'fancy', jsonPath: '.spec.c[?(@.x==' },
        { name: 'D', type: 'string', jsonPath: '.spec.d{' },
        { name: 'E', type: 'date', jsonPath: '.spec.list[0].a' },
        { name: 'F', type: 'integer', format: 'int32', jsonPath: '.metadata.labels.app\\.kubernetes\\.io/name' },
        { name: 'G', type: 'string', jsonPath: '.spec.list[*].name', priority: 1 },
        { name: 'H', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
      ],
    },
  },
  {
    about: 'invalid scale paths',
    word: 'scaled',
    version: {
      subresources: {
        scale: { specReplicasPath: '.status.replicas', statusReplicasPath: 'status.replicas', labelSelectorPath: '.x' },
      },
    },
  },
  {
    about: 'scale paths that are missing',
    word: 'unscaled',
    version: { subresources: { scale: { specReplicasPath: '', statusReplicasPath: '', labelSelectorPath: '' } } },
  },
  {
    about: 'scale paths with an index',
    word: 'indexed',
    version: {
      subresources: {
        scale: { specReplicasPath: '.spec.a[0].b', statusReplicasPath: '.status.n', labelSelectorPath: 'x y' },
      },
    },
  },
  {
    about: 'status and scale',
    word: 'whole',
    version: {
      subresources: {
        status: {},
        scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
      },
    },
  },
  {
    about: 'a root with more than status allows',
    word: 'rooted',
    schema: { ...spec({ a: text }), maxProperties: 3, oneOf: [{ required: ['spec'] }] },
    version: { subresources: { status: {} } },
  },
  { about: 'a nullable root', word: 'nullable', schema: { type: 'object', nullable: true } },
  { about: 'an unknown conversion', word: 'converted', spec: { conversion: { strategy: 'Magic' } } },
  { about: 'conversion without a strategy', word: 'unconverted', spec: { conversion: { strategy: '' } } },
  { about: 'a webhook without anything', word: 'hooked', spec: { conversion: { strategy: 'Webhook' } } },
  {
    about: 'a webhook that is not called',
    word: 'unasked',
    spec: {
      conversion: {
        strategy: 'None',
        webhook: { clientConfig: { url: 'https://example.com/' }, conversionReviewVersions: ['v1'] },
      },
    },
  },
  {
    about: 'a webhook with url and service',
    word: 'doubled',
    spec: hook({
      clientConfig: { url: 'https://example.com', service: { namespace: 'a', name: 'b' } },
      conversionReviewVersions: ['v1'],
    }),
  },
  ...[
    { url: 'http://example.com/convert' },
    { url: 'https://user@example.com/convert' },
    { url: 'https://example.com/convert?a=b#c' },
    { url: 'https:///convert' },
    { url: '://' },
    { service: { namespace: '', name: '' } },
    { service: { namespace: 'a', name: 'b', path: 'no-slash', port: 0 } },
    { service: { namespace: 'a', name: 'b', path: '/a//b', port: 70000 } },
    { service: { namespace: 'a', name: 'b', path: '/a b/c' } },
    { service: { namespace: 'a', name: 'b' }, caBundle: 'bm90IGEgY2VydGlmaWNhdGU=' },
  ].map((clientConfig, index) => ({
    about: `a webhook at ${JSON.stringify(clientConfig)}`,
    word: `address${'abcdefghij'.charAt(index)}`,
    spec: hook({ clientConfig, conversionReviewVersions: ['v1', 'v1beta1'] }),
  })),
  {
    about: 'unknown review versions',
    word: 'reviewed',
    spec: hook({ clientConfig: { url: 'https://example.com' }, conversionReviewVersions: ['v7', 'v7', 'V.x'] }),
  },
  {
    about: 'selectable fields of every kind',
    word: 'selected',
    schema: spec({
      a: text,
      b: { type: 'boolean' },
      c: { type: 'integer' },
      d: { type: 'number' },
      e: { type: 'array', items: text },
      f: object({ g: text }),
      h: { type: 'object', additionalProperties: text },
    }),
    version: {
      selectableFields: [
        { jsonPath: '.spec.a' },
        { jsonPath: '.spec.b' },
        { jsonPath: '.spec.c' },
        { jsonPath: '.spec.d' },
        { jsonPath: '.spec.e' },
        { jsonPath: '.spec.e[0]' },
        { jsonPath: '.spec.f' },
        { jsonPath: '.spec.f.g' },
        { jsonPath: '.spec.f.z' },
        { jsonPath: '.spec.h.x' },
        { jsonPath: '.spec.a' },
        { jsonPath: 'spec.a' },
        { jsonPath: '' },
        { jsonPath: '.metadata.name' },
        { jsonPath: '.spec..a' },
      ],
    },
  },
  {
    about: 'nine selectable fields',
    word: 'nine',
    schema: spec(Object.fromEntries('abcdefghi'.split('').map((name) => [name, text]))),
    version: { selectableFields: 'abcdefghi'.split('').map((name) => ({ jsonPath: `.spec.${name}` })) },
  },
  ...(
    [
      ['a property without a type', { a: {} }],
      ['an unknown type', { a: { type: 'text' } }],
      ['items without a type', { a: { type: 'array', items: {} } }],
      ['a list without items', { a: { type: 'array' } }],
      ['a list of item schemas', { a: { type: 'array', items: [text, { type: 'integer' }] } }],
      ['unique items', { a: { type: 'array', uniqueItems: true, items: text } }],
      ['properties and additionalProperties', { a: { ...object({ b: text }), additionalProperties: text } }],
      ['properties and additionalProperties false', { a: { ...object({ b: text }), additionalProperties: false } }],
      ['additionalProperties true', { a: { type: 'object', additionalProperties: true } }],
      ['additionalProperties without a type', { a: { type: 'object', additionalProperties: {} } }],
      ['a reference', { a: { $ref: '#/definitions/x' } }],
      ['definitions', { a: { ...text, definitions: { x: text } } }],
      ['dependencies', { a: { ...object({ b: text }), dependencies: { b: ['c'] } } }],
      ['patternProperties', { a: { type: 'object', patternProperties: { '^a': text } } }],
      ['a pattern that does not compile', { a: { ...text, pattern: '[a' } }],
      ['a pattern with lookahead', { a: { ...text, pattern: '^(?!x)a' } }],
      ['a type within allOf', { a: { ...text, allOf: [{ type: 'string' }] } }],
      ['a type within not', { a: { ...text, not: { type: 'string', minLength: 1 } } }],
      [
        'a property only within anyOf',
        { a: { ...object({ b: text }), anyOf: [{ properties: { c: { minLength: 1 } } }] } },
      ],
      ['a description within oneOf', { a: { ...text, oneOf: [{ description: 'x', minLength: 1 }] } }],
      ['a default within anyOf', { a: { ...text, anyOf: [{ default: 'x' }] } }],
      ['items within allOf', { a: { type: 'array', items: text, allOf: [{ items: { minLength: 2 } }] } }],
      ['additionalProperties within not', { a: { type: 'object', not: { additionalProperties: { minLength: 1 } } } }],
      ['int-or-string', { a: { 'x-kubernetes-int-or-string': true } }],
      ['int-or-string with a type', { a: { type: 'string', 'x-kubernetes-int-or-string': true } }],
      [
        'int-or-string with the standard anyOf',
        { a: { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true } },
      ],
      [
        'int-or-string with anyOf in another order',
        { a: { anyOf: [{ type: 'string' }, { type: 'integer' }], 'x-kubernetes-int-or-string': true } },
      ],
      ['preserve-unknown on a text', { a: { ...text, 'x-kubernetes-preserve-unknown-fields': true } }],
      ['preserve-unknown false', { a: { type: 'object', 'x-kubernetes-preserve-unknown-fields': false } }],
      ['preserve-unknown without a type', { a: { 'x-kubernetes-preserve-unknown-fields': true } }],
      ['an embedded resource without a schema', { a: { type: 'object', 'x-kubernetes-embedded-resource': true } }],
      [
        'an embedded resource that preserves unknown fields',
        { a: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true } },
      ],
      ...(
        [
          ['is empty', {}],
          ['has metadata of a wrong type', { apiVersion: 'v1', kind: 'Pod', metadata: { creationTimestamp: 'x' } }],
          ['has an invalid label', { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { 'a b': 'c' } } }],
          ['has an invalid version and unknown metadata', { apiVersion: 'a/b/c', kind: 'X', metadata: { foo: 1 } }],
          ['is valid', { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 'b' } }, more: 1 }],
        ] as const
      ).map(([what, value]): [string, JsonObject] => [
        `an embedded resource whose default ${what}`,
        {
          a: {
            ...{ type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
            default: value,
          },
        },
      ]),
      [
        'an invalid default of the values of a map',
        { a: { type: 'object', additionalProperties: { ...text, maxLength: 1, default: 'long' } } },
      ],
      ['an embedded text', { a: { ...text, 'x-kubernetes-embedded-resource': true } }],
      [
        'an embedded resource with odd metadata',
        {
          a: {
            ...object({ kind: { type: 'integer' }, apiVersion: text, metadata: { type: 'array', items: text } }),
            'x-kubernetes-embedded-resource': true,
          },
        },
      ],
      ['an unknown list type', { a: { type: 'array', items: text, 'x-kubernetes-list-type': 'bag' } }],
      ['a list type on a text', { a: { ...text, 'x-kubernetes-list-type': 'atomic' } }],
      [
        'a map list without keys',
        { a: { type: 'array', items: object({ k: text }), 'x-kubernetes-list-type': 'map' } },
      ],
      [
        'a map list with an optional key',
        {
          a: {
            ...{ type: 'array', items: object({ k: text }) },
            ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] },
          },
        },
      ],
      [
        'a map list with an unknown key',
        {
          a: {
            ...{ type: 'array', items: { ...object({ k: text }), required: ['k'] } },
            ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['x'] },
          },
        },
      ],
      [
        'a map list with the key twice',
        {
          a: {
            ...{ type: 'array', items: { ...object({ k: text }), required: ['k'] } },
            ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k', 'k'] },
          },
        },
      ],
      [
        'a map list with an object as key',
        {
          a: {
            ...{ type: 'array', items: { ...object({ k: object({}) }), required: ['k'] } },
            ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] },
          },
        },
      ],
      [
        'a map list of strings',
        { a: { type: 'array', items: text, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] } },
      ],
      ['keys of a list that is not a map', { a: { type: 'array', items: text, 'x-kubernetes-list-map-keys': ['k'] } }],
      ['a set of objects', { a: { type: 'array', items: object({ k: text }), 'x-kubernetes-list-type': 'set' } }],
      [
        'a set of atomic objects',
        {
          a: {
            ...{ type: 'array', items: { ...object({ k: text }), 'x-kubernetes-map-type': 'atomic' } },
            ...{ 'x-kubernetes-list-type': 'set' },
          },
        },
      ],
      [
        'a set of nullable strings',
        { a: { type: 'array', items: { ...text, nullable: true }, 'x-kubernetes-list-type': 'set' } },
      ],
      ['an unknown map type', { a: { type: 'object', 'x-kubernetes-map-type': 'soft' } }],
      ['a map type on a text', { a: { ...text, 'x-kubernetes-map-type': 'atomic' } }],
      ['a default of the wrong type', { a: { ...text, default: 3 } }],
      ['a default that its schema refuses', { a: { ...text, enum: ['x'], default: 'y' } }],
      ['a default with unknown fields', { a: { ...object({ b: text }), default: { b: 'x', c: 'y' } } }],
      ['a default null', { a: { ...text, default: null } }],
      ['a null default of a nullable field', { a: { ...text, nullable: true, default: null } }],
      ['negative lengths', { a: { ...text, minLength: -1, maxLength: -2 } }],
      ['an unknown format', { a: { ...text, format: 'fancy' } }],
      ['an integer format on a string', { a: { ...text, format: 'int32' } }],
      ['an enum of the wrong type', { a: { ...text, enum: [1, 2] } }],
      ['required fields twice', { a: { ...object({ b: text }), required: ['b', 'b', 'c'] } }],
      ['an unknown extension', { a: { ...text, 'x-kubernetes-magic': true } }],
      [
        'nullable, title, example',
        { a: { ...text, nullable: true, title: 'A', example: 'x', externalDocs: { url: 'x' } } },
      ],
      ['id and $schema', { a: { ...text, id: 'x', $schema: 'http://json-schema.org/schema#' } }],
    ] as [string, JsonObject][]
  ).map(([about, properties], index) => ({
    about,
    word: `schema${String.fromCharCode(97 + (index % 26))}${String.fromCharCode(97 + Math.floor(index / 26))}`,
    schema: spec(properties),
  })),
  {
    about: 'metadata with more than a name',
    word: 'metaed',
    schema: object({ metadata: { ...object({ name: { ...text, pattern: '^a' }, labels: { type: 'object' } }) } }),
  },
  {
    about: 'metadata with a default',
    word: 'metadefault',
    schema: object({ metadata: { ...object({}), default: {} } }),
  },
  {
    about: 'apiVersion as a number',
    word: 'numbered',
    schema: object({ apiVersion: { type: 'integer' }, kind: text }),
  },
  {
    about: 'properties of the root forbidden',
    word: 'closed',
    schema: { type: 'object', additionalProperties: false },
  },
  { about: 'a map as root', word: 'mapped', schema: { type: 'object', additionalProperties: text } },
  { about: 'an embedded root', word: 'embedded', schema: { type: 'object', 'x-kubernetes-embedded-resource': true } },
]

/** One dry run for each sample. */
export const definitionRows: readonly Row[] = [
  ...samples.map(({ about, ...sample }) =>
    row(`definition: ${about}`, async (session) => {
      const body = sampleCrd(sample)
      await session.send('POST', `${crdsPath}?dryRun=All`, { body, without: about === 'plain' ? [] : settled })
    }),
  ),
  ...(
    [
      ['an unknown field', { ...sampleCrd({ word: 'extra' }), extra: 1 }],
      ['an unknown field in the spec', sampleCrd({ word: 'extrab', spec: { validation: {} } })],
      ['a number for a name', sampleCrd({ word: 'extrac', names: { shortNames: 'x' } })],
      [
        'spec missing',
        {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          metadata: { name: 'x.example.com' },
        },
      ],
      ['names missing', sampleCrd({ word: 'extrad', spec: { names: {} } })],
      ['versions null', sampleCrd({ word: 'extrae', spec: { versions: null } })],
    ] as [string, JsonObject][]
  ).map(([about, body]) =>
    row(`definition: ${about}`, async (session) => {
      await session.send('POST', `${crdsPath}?dryRun=All`, { body, without: settled })
      await session.send('POST', `${crdsPath}?dryRun=All&fieldValidation=Strict`, { body, without: settled })
    }),
  ),
]
