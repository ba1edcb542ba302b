// The rights to write policies and bindings that name parameters.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt, type SendOptions, type Session } from '#test/parity/support/session.ts'

const rbac = 'rbac.authorization.k8s.io'
const group = 'admissionregistration.k8s.io'

interface Kinds {
  readonly version: string
  readonly prefix: 'Validating' | 'Mutating'
  readonly policySpec: JsonObject
  readonly bindingSpec: JsonObject
}

const matchConstraints = {
  resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
}

const kinds: readonly Kinds[] = [
  {
    ...{ version: 'v1', prefix: 'Validating' },
    policySpec: { matchConstraints, validations: [{ expression: 'true' }] },
    bindingSpec: { validationActions: ['Audit'] },
  },
  {
    ...{ version: 'v1beta1', prefix: 'Mutating' },
    policySpec: {
      ...{ matchConstraints, reinvocationPolicy: 'Never' },
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }],
    },
    bindingSpec: {},
  },
]

/** A user with all rights on policies and bindings, and these rights besides, everywhere or in the namespace alone. */
interface Writer {
  readonly name: string
  readonly rules?: readonly JsonObject[]
  readonly inNamespace?: boolean
}

const rule = (apiGroup: string, resource: string, verb: string, names: readonly string[] = []): JsonObject => ({
  ...{ apiGroups: [apiGroup], resources: [resource], verbs: [verb] },
  ...(names.length === 0 ? {} : { resourceNames: [...names] }),
})

const writers: readonly Writer[] = [
  { name: 'policies-alone' },
  { name: 'reader', rules: [rule('', 'configmaps', 'get')] },
  { name: 'lister', rules: [rule('', 'configmaps', 'list')] },
  { name: 'named-reader', rules: [rule('', 'configmaps', 'get', ['a'])] },
  { name: 'namespace-reader', rules: [rule('', 'configmaps', 'get')], inNamespace: true },
  { name: 'group-reader', rules: [rule('none.example.com', '*', 'get')] },
  { name: 'reader-of-all', rules: [rule('*', '*', 'get'), rule('*', '*', 'list')] },
]

async function grantRights(session: Session, { name, rules = [], inNamespace = false }: Writer): Promise<void> {
  const own = { apiGroups: [group], resources: ['*'], verbs: ['*'] }
  await grantRole(session, 'ClusterRole', `${name}-policies`, name, [own])
  if (rules.length > 0) await grantRole(session, inNamespace ? 'Role' : 'ClusterRole', `${name}-params`, name, rules)
}

async function grantRole(
  session: Session,
  kind: 'Role' | 'ClusterRole',
  role: string,
  user: string,
  rules: readonly JsonObject[],
): Promise<void> {
  const apiVersion = `${rbac}/v1`
  const metadata = { name: `${role}-$ID` }
  const subjects = [{ apiGroup: rbac, kind: 'User', name: `${user}-$ID` }]
  const roleRef = { apiGroup: rbac, kind, name: metadata.name }
  await session.create({ apiVersion, kind, metadata, rules: [...rules] }, { quiet: true })
  await session.create({ apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects }, { quiet: true })
  const [first] = rules
  const resourceAttributes = {
    ...{ group: firstOf(first, 'apiGroups'), resource: firstOf(first, 'resources'), verb: firstOf(first, 'verbs') },
    ...{ namespace: kind === 'Role' ? '$NS' : '', name: firstOf(first, 'resourceNames') },
  }
  await session.untilAnswered(
    ...(['POST', `/apis/authorization.k8s.io/v1/subjectaccessreviews`] as const),
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: `${user}-$ID`, resourceAttributes },
    },
    ({ body }) => valueAt(body, 'status.allowed') === true,
  )
}

const firstOf = (rule: JsonObject | undefined, field: string): string => {
  const first = valueAt(rule, `${field}.0`)
  return typeof first === 'string' ? first : ''
}

const as = (user: string): SendOptions => ({ headers: { 'impersonate-user': `${user}-$ID` } })

const configMapKind = { apiVersion: 'v1', kind: 'ConfigMap' }
const paramKinds: readonly JsonObject[] = [
  configMapKind,
  { apiVersion: 'apps/v1', kind: 'Deployment' },
  { apiVersion: 'apps/v1', kind: 'None' },
  { apiVersion: 'none.example.com/v1', kind: 'None' },
]

const allow = { parameterNotFoundAction: 'Allow' }
const paramRefs: readonly JsonObject[] = [
  { ...allow, name: 'a' },
  { ...allow, name: 'b', namespace: '$NS' },
  { ...allow, selector: {} },
  { ...allow, selector: { matchLabels: { a: 'b' } }, namespace: '$NS' },
]

/** A request body and path for each kind. */
function writesOf({ version, prefix, policySpec, bindingSpec }: Kinds) {
  const apiVersion = `${group}/${version}`
  const word = prefix.toLowerCase()
  const path = `/apis/${group}/${version}/${word}admissionpolic`
  const [policies, bindings] = [`${path}ies`, `${path}ybindings`]
  const policy = (name: string, spec: JsonObject = {}): JsonObject => ({
    ...{ apiVersion, kind: `${prefix}AdmissionPolicy`, metadata: { name: `${name}.$ID` } },
    spec: { ...policySpec, ...spec },
  })
  const binding = (name: string, policyName: string, spec: JsonObject = {}): JsonObject => ({
    ...{ apiVersion, kind: `${prefix}AdmissionPolicyBinding`, metadata: { name: `${name}.$ID` } },
    spec: { ...bindingSpec, policyName: `${policyName}.$ID`, ...spec },
  })
  return { policies, bindings, policy, binding }
}

function policyRow(kind: Kinds): Row {
  return row(`${kind.prefix}AdmissionPolicy: who may name which parameters`, async (session) => {
    const { policies, policy } = writesOf(kind)
    for (const writer of writers) await grantRights(session, writer)
    for (const { name } of writers) {
      await session.send('POST', `${policies}?dryRun=All`, { ...as(name), body: policy('none') })
      for (const paramKind of paramKinds)
        await session.send('POST', `${policies}?dryRun=All`, { ...as(name), body: policy('new', { paramKind }) })
    }
    await session.send('POST', policies, { body: policy('rights', { paramKind: configMapKind }), quiet: true })
    const path = `${policies}/rights.$ID`
    for (const name of ['policies-alone', 'reader']) {
      await session.patch(`${path}?dryRun=All`, { metadata: { labels: { a: 'b' } } }, 'merge', as(name))
      await session.patch(`${path}?dryRun=All`, { spec: { failurePolicy: 'Ignore' } }, 'merge', as(name))
      await session.patch(`${path}?dryRun=All`, { spec: { paramKind: { kind: 'Secret' } } }, 'merge', as(name))
      await session.patch(`${path}?dryRun=All`, { spec: { paramKind: null } }, 'merge', as(name))
    }
    await session.send('DELETE', path, { quiet: true })
  })
}

function bindingRow(kind: Kinds): Row {
  return row(`${kind.prefix}AdmissionPolicyBinding: who may name which parameters`, async (session) => {
    const { policies, bindings, policy, binding } = writesOf(kind)
    for (const writer of writers) await grantRights(session, writer)
    await session.send('POST', policies, { body: policy('bound', { paramKind: configMapKind }), quiet: true })
    await session.send('POST', policies, { body: policy('without'), quiet: true })
    await session.send('POST', policies, { body: policy('unknown', { paramKind: paramKinds[3] ?? {} }), quiet: true })
    for (const { name } of writers) {
      await session.send('POST', `${bindings}?dryRun=All`, { ...as(name), body: binding('none', 'bound') })
      for (const policyName of ['bound', 'without', 'unknown', 'absent'])
        for (const paramRef of paramRefs)
          await session.send('POST', `${bindings}?dryRun=All`, {
            ...as(name),
            body: binding('new', policyName, { paramRef }),
          })
    }
    const [paramRef = {}] = paramRefs
    await session.send('POST', bindings, { body: binding('rights', 'bound', { paramRef }), quiet: true })
    const path = `${bindings}/rights.$ID`
    for (const name of ['policies-alone', 'reader']) {
      await session.patch(`${path}?dryRun=All`, { metadata: { labels: { a: 'b' } } }, 'merge', as(name))
      await session.patch(`${path}?dryRun=All`, { spec: { paramRef: { name: 'c' } } }, 'merge', as(name))
      await session.patch(`${path}?dryRun=All`, { spec: { paramRef: null } }, 'merge', as(name))
    }
    for (const name of ['bound', 'without', 'unknown'])
      await session.send('DELETE', `${policies}/${name}.$ID`, { quiet: true })
    await session.send('DELETE', path, { quiet: true })
  })
}

export const paramRightsRows: readonly Row[] = kinds.flatMap((kind) => [policyRow(kind), bindingRow(kind)])
