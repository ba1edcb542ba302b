// Tests on the real write path what policies write into the audit line.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { Store } from '#store/index.ts'
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import { createAuthorizer } from '#virtualapi/auth/authz/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { Registry } from './registry.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { validatingPolicies } from '#virtualapi/write/policies/validating-policies.ts'

const group = 'admissionregistration.k8s.io'
const { signal } = new AbortController()

describe('what policies write into the audit line', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects
  let registry: Registry
  const catalog = new ClusterCatalog()
  const post = () => Promise.reject(new Error('there are no webhooks'))
  const conversions = new Conversions({ outbound: { post } })

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-policies-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
    objects = await watchCache.cluster('policies01' as ClusterId, { signal })
    const plugin = validatingPolicies({ authorizer: createAuthorizer({ watchCache }), catalog, conversions })
    registry = new Registry({ admission: createAdmission({ plugins: [plugin] }), conversions })
    await create('namespaces', { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'shop' } }, '')
    for (const name of ['one', 'two'])
      await create('configmaps', configMap(`param-${name}`, { value: name }, { param: 'yes' }))
    await create('validatingadmissionpolicies', policy)
    await create('validatingadmissionpolicybindings', binding)
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  /** Resolves with the annotations of the request. */
  async function create(resource: string, object: KubeObject, namespace = 'shop'): Promise<Record<string, string>> {
    const definition = catalog.findBuiltIn({
      group: resource.includes('admission') ? group : '',
      version: 'v1',
      resource,
    })
    if (definition === undefined) throw new Error(`${resource} is not built in`)
    const annotations: Record<string, string> = {}
    const cluster = {
      ...{ name: 'policies' as ClusterName, id: objects.cluster, uid: 'u', creationTimestamp: '2025-01-01T00:00:00Z' },
      ...{ owners: [], deleting: false },
    }
    const user = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } } as const
    const annotate = (key: string, value: string): void => void (annotations[key] ??= value)
    const context = {
      ...{ cluster, objects, user, annotate, dryRun: false, fieldManager: '', warnings: [] },
      ...{ work: new WorkBudget(), now: 0 },
    }
    await registry.create(
      { definition, signal, namespace: definition.info.namespaced ? namespace : '', context },
      object,
    )
    return annotations
  }

  it('has the annotations of a policy, several values in one, and what is null not at all', async () => {
    expect(await create('configmaps', configMap('good', { a: 'b' }))).to.deep.equal({
      'shapes/entries': '1 entries, says one, 1 entries, says two',
    })
  })

  it('tells of a validation that failed under the action Audit, and lets the object pass', async () => {
    const annotations = await create('configmaps', configMap('bad', { secret: 'x' }))
    const failures = JSON.parse(annotations['validation.policy.admission.k8s.io/validation_failure'] ?? '') as unknown
    expect(failures).to.deep.equal([
      {
        message: 'no secrets',
        policy: 'shapes',
        binding: 'shapes-in-shop',
        expressionIndex: 1,
        validationActions: ['Audit'],
      },
    ])
  })

  it('refuses the object where an annotation cannot be computed, whatever the actions are', async () => {
    const refused = await create('configmaps', configMap('broken', { broken: 'x' })).catch((error: unknown) => error)
    expect((refused as Error).message).to.contain("ValidatingAdmissionPolicy 'shapes' with binding 'shapes-in-shop'")
    expect((refused as Error).message).to.contain('resulted in error: division by zero')
  })
})

const configMap = (name: string, data: object, labels = {}): KubeObject => ({
  ...{ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, labels } },
  data,
})

const policy: KubeObject = {
  ...{ kind: 'ValidatingAdmissionPolicy', apiVersion: `${group}/v1`, metadata: { name: 'shapes' } },
  spec: {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    matchConstraints: {
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
    },
    validations: [{ expression: 'true' }, { expression: '!("secret" in object.data)', message: 'no secrets' }],
    auditAnnotations: [
      { key: 'entries', valueExpression: 'string(object.data.size()) + " entries, says " + params.data.value' },
      { key: 'nothing', valueExpression: 'null' },
      { key: 'broken', valueExpression: '"broken" in object.data ? string(1 / 0) : ""' },
    ],
  },
}

const binding: KubeObject = {
  ...{ kind: 'ValidatingAdmissionPolicyBinding', apiVersion: `${group}/v1`, metadata: { name: 'shapes-in-shop' } },
  spec: {
    policyName: 'shapes',
    validationActions: ['Audit'],
    paramRef: { selector: { matchLabels: { param: 'yes' } }, parameterNotFoundAction: 'Deny' },
  },
}
