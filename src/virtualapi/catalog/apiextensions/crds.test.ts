import { expect } from 'chai'
import { causeText } from '#apimachinery/field/index.ts'
import { cloneJson } from '#apimachinery/meta/index.ts'
import {
  compileCrd,
  crdStatus,
  defaultCrd,
  isEstablished,
  validateCrd,
  validateCrdUpdate,
  type CustomResourceDefinition,
} from './index.ts'

const schema = {
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { color: { type: 'string' }, size: { type: 'integer', default: 1 } } },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
}

function crd(change?: (crd: CustomResourceDefinition) => void): CustomResourceDefinition {
  const base: CustomResourceDefinition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['all'] },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: cloneJson(schema) } }],
    },
  }
  change?.(base)
  defaultCrd(base)
  return base
}

const now = '2026-01-01T00:00:00Z'
const first = (base: CustomResourceDefinition): CustomResourceDefinition['spec']['versions'][number] => {
  const [version] = base.spec.versions
  if (version === undefined) throw new Error('no version')
  return version
}

describe('defaultCrd', () => {
  it('sets names, conversion and the stored version', () => {
    const { spec, status } = crd()
    expect(spec.names).to.deep.include({ singular: 'widget', listKind: 'WidgetList' })
    expect(spec.conversion).to.deep.equal({ strategy: 'None' })
    expect(status?.storedVersions).to.deep.equal(['v1'])
  })
})

describe('patterns of a CRD', () => {
  const withPatterns = (patterns: readonly string[]): CustomResourceDefinition =>
    crd((base) => {
      const fields = patterns.map((pattern, i) => [`f${i}`, { type: 'string', pattern }] as const)
      first(base).schema = { openAPIV3Schema: { type: 'object', properties: Object.fromEntries(fields) } }
    })

  it('are refused without compiling them if one or all together are too large, in less than a second', () => {
    const before = process.cpuUsage()
    const three = withPatterns(['(a|b)', '(a|c)', '(a|d)'].map((text) => text.repeat(40_000)))
    const many = withPatterns(Array.from({ length: 5000 }, (_, i) => `(${'abcdefg'.repeat(20)}${i}){60}`))
    const one = withPatterns(['(a|b)'.repeat(4_000)])
    const [tooMany, tooLarge] = [three, many].map((base) => validateCrd(base).map(causeText))
    const all =
      'spec.versions: Forbidden: all patterns together must not be larger than 50000 instructions of a regular expression'
    expect(tooMany).to.deep.equal([all])
    expect(tooLarge).to.deep.equal([all])
    const [cause] = validateCrd(one)
    expect(cause?.message).to.match(/must be a valid regular expression, but isn't: .*expression too large$/)
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1e6).to.be.lessThan(1)
  })

  it('count once where they are equal', () => {
    const pattern = `(${'abcdefg'.repeat(20)}){60}`
    expect(validateCrd(withPatterns(Array.from({ length: 500 }, () => pattern)))).to.deep.equal([])
  })
})

describe('validation of a CRD', () => {
  it('refuses defaults that together take too long to be checked', () => {
    const withLists = (count: number): CustomResourceDefinition => {
      const anyOf = Array.from({ length: 1000 }, (_, i) => ({ minimum: 1000 - i }))
      const property = {
        type: 'array',
        items: { type: 'integer', anyOf },
        default: Array.from({ length: 1000 }, () => 1),
      }
      const properties = Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, property]))
      const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', properties } } }
      return crd((one) => (first(one).schema = { openAPIV3Schema }))
    }
    expect(validateCrd(withLists(1))).to.deep.equal([])
    expect(() => validateCrd(withLists(3))).to.throw('takes too long to be checked')
  })

  const root = 'spec.validation.openAPIV3Schema'
  const cases: { title: string; change: (crd: CustomResourceDefinition) => void; causes: string[] }[] = [
    { title: 'accepts a valid CRD', change: () => undefined, causes: [] },
    {
      title: 'requires the name to be plural.group',
      change: (c) => (c.metadata.name = 'x.example.com'),
      causes: ['metadata.name: Invalid value: "x.example.com": must be spec.names.plural+"."+spec.group'],
    },
    {
      title: 'requires a dot in the group',
      change: (c) => ((c.spec.group = 'example'), (c.metadata.name = 'widgets.example')),
      causes: ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    },
    {
      title: 'requires a known scope',
      change: (c) => (c.spec.scope = 'Planet'),
      causes: ['spec.scope: Unsupported value: "Planet": supported values: "Cluster", "Namespaced"'],
    },
    {
      title: 'requires a schema',
      change: (c) => delete first(c).schema,
      causes: ['spec.versions[0].schema.openAPIV3Schema: Required value'],
    },
    {
      title: 'requires types',
      change: (c) => (first(c).schema = { openAPIV3Schema: { type: 'object', properties: { spec: {} } } }),
      causes: [`${root}.properties[spec].type: Required value: must not be empty for specified object fields`],
    },
    {
      title: 'checks defaults',
      change: (c) =>
        (first(c).schema = {
          openAPIV3Schema: { type: 'object', properties: { spec: { type: 'integer', default: 'x' } } },
        }),
      causes: [`${root}.properties[spec].default: Invalid value: "string":  in body must be of type integer: "string"`],
    },
    {
      title: 'refuses unknown fields in defaults',
      change: (c) =>
        (first(c).schema = {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: {}, default: { x: 1 } } },
          },
        }),
      causes: [`${root}.properties[spec].default: Invalid value: {"x":1}: must not have unknown fields`],
    },
    {
      title: 'refuses uniqueItems',
      change: (c) =>
        (first(c).schema = {
          openAPIV3Schema: {
            type: 'object',
            properties: { l: { type: 'array', uniqueItems: true, items: { type: 'string' } } },
          },
        }),
      causes: [
        `${root}.properties[l].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
      ],
    },
    {
      title: 'requires list-map keys to be required or to have a default',
      change: (c) =>
        (first(c).schema = {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              l: {
                type: 'array',
                'x-kubernetes-list-type': 'map',
                'x-kubernetes-list-map-keys': ['k'],
                items: { type: 'object', properties: { k: { type: 'string' } } },
              },
            },
          },
        }),
      causes: [
        `${root}.properties[l].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
      ],
    },
    {
      title: 'requires known column types',
      change: (c) => (first(c).additionalPrinterColumns = [{ name: 'C', type: 'colour', jsonPath: 'spec.color' }]),
      causes: [
        'spec.additionalPrinterColumns[0].type: Invalid value: "colour": must be one of boolean,date,integer,number,string',
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.color": must be a simple json path starting with .',
      ],
    },
    {
      title: 'requires scale paths below spec and status',
      change: (c) => (first(c).subresources = { scale: { specReplicasPath: '.x', statusReplicasPath: '' } }),
      causes: [
        'spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec',
        'spec.subresources.scale.statusReplicasPath: Required value',
      ],
    },
    {
      title: 'requires selectable fields to be scalars',
      change: (c) =>
        (first(c).selectableFields = [{ jsonPath: '.spec' }, { jsonPath: '.spec.nope' }, { jsonPath: '.spec.color' }]),
      causes: [
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
        'spec.selectableFields[1].jsonPath: Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field',
      ],
    },
    {
      title: 'requires an approval for groups of Kubernetes',
      change: (c) => ((c.spec.group = 'x.k8s.io'), (c.metadata.name = 'widgets.x.k8s.io')),
      causes: [
        'metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
      ],
    },
    {
      title: 'refuses preserveUnknownFields',
      change: (c) => (c.spec.preserveUnknownFields = true),
      causes: [
        'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ],
    },
    {
      title: 'refuses a deprecation warning on a version that is not deprecated',
      change: (c) => (first(c).deprecationWarning = 'x'),
      causes: ['spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'],
    },
    {
      title: 'requires a clientConfig for webhook conversion',
      change: (c) => (c.spec.conversion = { strategy: 'Webhook' }),
      causes: [
        'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
        'spec.conversion.conversionReviewVersions: Required value',
      ],
    },
  ]
  for (const { title, change, causes } of cases) {
    it(title, () => expect(validateCrd(crd(change)).map(causeText)).to.deep.equal(causes))
  }
  it('requires exactly one storage version, and unique names', () => {
    const twice = crd((c) => c.spec.versions.push(cloneJson(first(c))))
    const texts = validateCrd(twice).map(causeText)
    expect(texts.some((text) => text.endsWith('must contain unique version names'))).to.equal(true)
    expect(texts.some((text) => text.endsWith('must have exactly one version marked as storage version'))).to.equal(
      true,
    )
  })
  it('reports the path below spec.versions if the schemas of versions differ', () => {
    const two = crd((c) =>
      c.spec.versions.push({
        name: 'v2',
        served: true,
        storage: false,
        schema: { openAPIV3Schema: { type: 'object', properties: { a: {} } } },
      }),
    )
    expect(validateCrd(two).map(causeText)).to.deep.equal([
      'spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields',
    ])
  })
  it('refuses a changed kind or scope once established', () => {
    const old = crd()
    old.status = crdStatus(old, [], now)
    const changed = crd((c) => ((c.spec.names.kind = 'Gadget'), (c.spec.scope = 'Cluster')))
    expect(validateCrdUpdate(changed, old).map(causeText)).to.deep.equal([
      'spec.scope: Invalid value: "Cluster": field is immutable',
      'spec.names.kind: Invalid value: "Gadget": field is immutable',
    ])
  })
})

describe('crdStatus', () => {
  it('is established within the first write', () => {
    const fresh = crd()
    fresh.status = crdStatus(fresh, [], now)
    expect(fresh.status).to.deep.equal({
      conditions: [
        {
          lastTransitionTime: now,
          message: 'no conflicts found',
          reason: 'NoConflicts',
          status: 'True',
          type: 'NamesAccepted',
        },
        {
          lastTransitionTime: now,
          message: 'the initial names have been accepted',
          reason: 'InitialNamesAccepted',
          status: 'True',
          type: 'Established',
        },
      ],
      acceptedNames: {
        plural: 'widgets',
        singular: 'widget',
        kind: 'Widget',
        listKind: 'WidgetList',
        shortNames: ['wd'],
        categories: ['all'],
      },
      storedVersions: ['v1'],
    })
    expect(isEstablished(fresh)).to.equal(true)
    expect(crdStatus(fresh, [fresh], '2027-01-01T00:00:00Z')).to.deep.equal(fresh.status)
  })
  it('reports names that other CRDs use', () => {
    const other = crd()
    other.status = crdStatus(other, [], now)
    const late = crd(
      (c) => (
        (c.metadata.name = 'gadgets.example.com'),
        (c.spec.names = { plural: 'gadgets', kind: 'Widget', shortNames: ['wd', 'gd'] })
      ),
    )
    const { conditions, acceptedNames } = crdStatus(late, [other], now)
    expect(conditions?.map(({ type, status, reason, message }) => [type, status, reason, message])).to.deep.equal([
      ['NamesAccepted', 'False', 'ListKindConflict', '"WidgetList" is already in use'],
      ['Established', 'False', 'NotAccepted', 'not all names are accepted'],
    ])
    expect(acceptedNames).to.deep.equal({ plural: 'gadgets', kind: '' })
  })
  it('stays established, and accepts names that became free', () => {
    const own = crd()
    own.status = crdStatus(own, [], now)
    own.spec.names.shortNames = ['wx']
    const rival = crd(
      (c) => ((c.metadata.name = 'xs.example.com'), (c.spec.names = { plural: 'xs', kind: 'X', shortNames: ['wx'] })),
    )
    rival.status = crdStatus(rival, [], now)
    const conflicting = crdStatus(own, [rival], now)
    expect(conflicting.conditions?.map(({ type, status }) => `${type}=${status}`)).to.deep.equal([
      'NamesAccepted=False',
      'Established=True',
    ])
    expect(conflicting.acceptedNames?.shortNames).to.deep.equal(['wd'])
    expect(crdStatus({ ...own, status: conflicting }, [], now).acceptedNames?.shortNames).to.deep.equal(['wx'])
  })
  it('keeps stored versions and reports schemas that are not structural', () => {
    const moved = crd((c) => (c.status = { storedVersions: ['v0'] }))
    first(moved).schema = { openAPIV3Schema: {} }
    const { conditions, storedVersions } = crdStatus(moved, [], now)
    expect(storedVersions).to.deep.equal(['v0', 'v1'])
    expect(conditions?.[2]).to.deep.include({
      type: 'NonStructuralSchema',
      message: 'spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root',
    })
  })
})

describe('compileCrd', () => {
  it('returns the rows of the resource table', () => {
    const { resourceInfos, versions, storageApiVersion } = compileCrd(
      crd(
        (c) =>
          (first(c).subresources = {
            status: {},
            scale: { specReplicasPath: '.spec.r', statusReplicasPath: '.status.r' },
          }),
      ),
    )
    expect(storageApiVersion).to.equal('example.com/v1')
    expect(resourceInfos).to.deep.equal([
      {
        group: 'example.com',
        version: 'v1',
        resource: 'widgets',
        singular: 'widget',
        kind: 'Widget',
        namespaced: true,
        verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
        shortNames: ['wd'],
        categories: ['all'],
        subresources: [
          { name: 'status', group: 'example.com', version: 'v1', kind: 'Widget', verbs: ['get', 'patch', 'update'] },
          { name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get', 'patch', 'update'] },
        ],
        storageVersionHash: 'gIwvi5rymmg=',
        builtIn: false,
      },
    ])
    expect(versions[0]).to.deep.include({ hasStatus: true, listKind: 'WidgetList', selectableFields: [] })
    expect(versions[0]?.columns.map(({ name }) => name)).to.deep.equal(['Age'])
  })
  it('returns the same object for the same content', () => {
    expect(compileCrd(crd())).to.equal(compileCrd(crd()))
    expect(compileCrd(crd())).to.not.equal(compileCrd(crd((c) => (c.spec.scope = 'Cluster'))))
  })
  it('shares schemas between versions and CRDs', () => {
    const two = compileCrd(
      crd((c) => c.spec.versions.push({ ...cloneJson(first(c)), name: 'v2', storage: false, deprecated: true })),
    )
    expect(two.versions[0]?.schema).to.equal(two.versions[1]?.schema)
    expect(two.versions[1]?.deprecationWarning).to.equal('example.com/v2 Widget is deprecated')
  })
  it('names the newest version in deprecation warnings, and reads each version a few times for all of them', () => {
    const count = 300
    let reads = 0
    const definition = crd((c) => {
      const template = cloneJson(first(c))
      c.spec.versions = Array.from({ length: count }, (_, i) =>
        Object.defineProperty({ ...template, name: `v${i + 1}`, storage: i === 0 }, 'deprecated', {
          enumerable: true,
          get: () => {
            reads++
            return i + 1 < count
          },
        }),
      )
    })
    const { versions } = compileCrd(definition)
    expect(versions[0]?.deprecationWarning).to.equal('example.com/v1 Widget is deprecated; use example.com/v300 Widget')
    expect(reads).to.be.within(count, 5 * count)
  })

  it('keeps fewer definitions with long rules, which take forty times the memory of other text when compiled', () => {
    const withText = (name: string, text: object) =>
      compileCrd(
        crd((c) => {
          const spec = { type: 'object', description: name, ...text }
          first(c).schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
        }),
      )
    const names = Array.from({ length: 8 }, (_, i) => `n${i}`)
    const keptOf = (make: (name: string) => unknown): number => {
      const compiled = names.map(make)
      return names.filter((name, index) => compiled[index] === make(name)).length
    }
    const long = 'x'.repeat(400_000)
    expect(keptOf((name) => withText(name, { title: long }))).to.equal(names.length)
    const rules = [{ rule: `self == '\\"${long}'` }]
    expect(keptOf((name) => withText(name, { 'x-kubernetes-validations': rules }))).to.be.below(names.length)
  })
})
