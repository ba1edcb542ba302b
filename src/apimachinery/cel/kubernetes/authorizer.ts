// `authorizer` in admission policies: asks whether somebody may do something. What decides is given by the caller.
import { dns1123LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import { type FunctionDeclaration, type Implementation, member } from '#apimachinery/cel/declarations/declarations.ts'
import { boolType, type CelType, stringType, structType } from '#apimachinery/cel/types/cel-type.ts'
import { CelError, CelObject, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'

/** A question to an authorizer. Selectors are as they are written. */
export type AuthorizationQuestion =
  | { readonly kind: 'path'; readonly path: string; readonly verb: string }
  | {
      readonly kind: 'resource'
      readonly group: string
      readonly resource: string
      readonly subresource: string
      readonly namespace: string
      readonly name: string
      readonly fieldSelector: string
      readonly labelSelector: string
      readonly verb: string
    }

export interface AuthorizationAnswer {
  readonly allowed: boolean
  readonly reason: string
  /** Why there is no decision. */
  readonly error?: string
}

/** Decides for one user, at once. */
export interface CelAuthorizer {
  readonly authorize: (question: AuthorizationQuestion) => AuthorizationAnswer
  /** Decides for a service account instead. */
  readonly asServiceAccount: (namespace: string, name: string) => CelAuthorizer
}

abstract class Checked extends CelObject {
  override equalTo(other: Value): boolean | CelError {
    return other === this || noSuchOverload
  }
}

class AuthorizerValue extends Checked {
  readonly typeName = 'kubernetes.authorization.Authorizer'
  readonly authorizer: CelAuthorizer

  constructor(authorizer: CelAuthorizer) {
    super()
    this.authorizer = authorizer
  }
}

class PathCheck extends Checked {
  readonly typeName = 'kubernetes.authorization.PathCheck'
  readonly authorizer: CelAuthorizer
  readonly path: string

  constructor(authorizer: CelAuthorizer, path: string) {
    super()
    this.authorizer = authorizer
    this.path = path
  }
}

class GroupCheck extends Checked {
  readonly typeName = 'kubernetes.authorization.GroupCheck'
  readonly authorizer: CelAuthorizer
  readonly group: string

  constructor(authorizer: CelAuthorizer, group: string) {
    super()
    this.authorizer = authorizer
    this.group = group
  }
}

type ResourceFields = Omit<Extract<AuthorizationQuestion, { kind: 'resource' }>, 'kind' | 'verb'>

class ResourceCheck extends Checked {
  readonly typeName = 'kubernetes.authorization.ResourceCheck'
  readonly authorizer: CelAuthorizer
  readonly fields: ResourceFields

  constructor(authorizer: CelAuthorizer, fields: ResourceFields) {
    super()
    this.authorizer = authorizer
    this.fields = fields
  }
}

class Decision extends Checked {
  readonly typeName = 'kubernetes.authorization.Decision'
  readonly answer: AuthorizationAnswer

  constructor(answer: AuthorizationAnswer) {
    super()
    this.answer = answer
  }
}

const noSelection = { subresource: '', namespace: '', name: '', fieldSelector: '', labelSelector: '' }

/** The value of the variable `authorizer`. */
export function authorizerValue(authorizer: CelAuthorizer): Value {
  return new AuthorizerValue(authorizer)
}

/** The value of `authorizer.requestResource`: a check of the resource that a request is about. */
export function requestResourceValue(
  authorizer: CelAuthorizer,
  request: Pick<ResourceFields, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>,
): Value {
  return new ResourceCheck(authorizer, { ...noSelection, ...request })
}

export const authorizerType = structType('kubernetes.authorization.Authorizer')
export const resourceCheckType = structType('kubernetes.authorization.ResourceCheck')
const pathCheckType = structType('kubernetes.authorization.PathCheck')
const groupCheckType = structType('kubernetes.authorization.GroupCheck')
const decisionType = structType('kubernetes.authorization.Decision')

function method(
  name: string,
  id: string,
  params: readonly CelType[],
  result: CelType,
  run: Implementation,
): FunctionDeclaration {
  return { name, overloads: [member(id, params, result, run)] }
}

const path: Implementation = (value, text) => {
  if (!(value instanceof AuthorizerValue) || typeof text !== 'string') return noSuchOverload
  return text.trim() === '' ? new CelError('path must not be empty') : new PathCheck(value.authorizer, text)
}

const group: Implementation = (value, text) =>
  value instanceof AuthorizerValue && typeof text === 'string' ? new GroupCheck(value.authorizer, text) : noSuchOverload

const serviceAccount: Implementation = (value, namespace, name) => {
  if (!(value instanceof AuthorizerValue) || typeof namespace !== 'string' || typeof name !== 'string')
    return noSuchOverload
  if (dns1123SubdomainErrors(name).length > 0) return new CelError('Invalid service account name')
  if (dns1123LabelErrors(namespace).length > 0) return new CelError('Invalid service account namespace')
  return new AuthorizerValue(value.authorizer.asServiceAccount(namespace, name))
}

const resource: Implementation = (value, text) => {
  if (!(value instanceof GroupCheck) || typeof text !== 'string') return noSuchOverload
  if (text.trim() === '') return new CelError('resource must not be empty')
  return new ResourceCheck(value.authorizer, { ...noSelection, group: value.group, resource: text })
}

function narrowing(name: keyof typeof noSelection, id: string): FunctionDeclaration {
  const run: Implementation = (value, text) =>
    value instanceof ResourceCheck && typeof text === 'string'
      ? new ResourceCheck(value.authorizer, { ...value.fields, [name]: text })
      : noSuchOverload
  return method(name, id, [resourceCheckType, stringType], resourceCheckType, run)
}

const check: Implementation = (value, verb) => {
  if (typeof verb !== 'string') return noSuchOverload
  if (value instanceof PathCheck)
    return new Decision(value.authorizer.authorize({ kind: 'path', path: value.path, verb }))
  if (!(value instanceof ResourceCheck)) return noSuchOverload
  return new Decision(value.authorizer.authorize({ kind: 'resource', ...value.fields, verb }))
}

const ofDecision =
  (read: (answer: AuthorizationAnswer) => Value): Implementation =>
  (value) =>
    value instanceof Decision ? read(value.answer) : noSuchOverload

export const authorizerFunctions: readonly FunctionDeclaration[] = [
  method('path', 'authorizer_path', [authorizerType, stringType], pathCheckType, path),
  method('group', 'authorizer_group', [authorizerType, stringType], groupCheckType, group),
  method(
    'serviceAccount',
    'authorizer_serviceaccount',
    [authorizerType, stringType, stringType],
    authorizerType,
    serviceAccount,
  ),
  method('resource', 'groupcheck_resource', [groupCheckType, stringType], resourceCheckType, resource),
  narrowing('subresource', 'resourcecheck_subresource'),
  narrowing('namespace', 'resourcecheck_namespace'),
  narrowing('name', 'resourcecheck_name'),
  {
    name: 'check',
    overloads: [
      member('pathcheck_check', [pathCheckType, stringType], decisionType, check),
      member('resourcecheck_check', [resourceCheckType, stringType], decisionType, check),
    ],
  },
  method(
    'errored',
    'decision_errored',
    [decisionType],
    boolType,
    ofDecision(({ error }) => error !== undefined),
  ),
  method(
    'error',
    'decision_error',
    [decisionType],
    stringType,
    ofDecision(({ error = '' }) => error),
  ),
  method(
    'allowed',
    'decision_allowed',
    [decisionType],
    boolType,
    ofDecision(({ allowed }) => allowed),
  ),
  method(
    'reason',
    'decision_reason',
    [decisionType],
    stringType,
    ofDecision(({ reason }) => reason),
  ),
]

export const authorizerSelectorFunctions: readonly FunctionDeclaration[] = [
  narrowing('fieldSelector', 'authorizer_fieldselector'),
  narrowing('labelSelector', 'authorizer_labelselector'),
]
