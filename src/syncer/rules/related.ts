// The rules for Secrets and ConfigMaps that a member's controller makes for a custom resource. The admin's export names
// the field with their name. What the member says in a status counts only for names that begin with that of the object,
// as controllers give them; a name in the spec is the tenant's own word. No object of the tenant is ever replaced.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, relatedToAnnotation, valueAt, type RelatedReference } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'

const nameForm = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
/** Names that the system gives in each namespace. */
const systemNames: ReadonlySet<string> = new Set(['kube-root-ca.crt', 'istio-ca-root-cert'])

/** The name of the related object; undefined if there is none that the member may show. */
export function relatedName(
  { path }: RelatedReference,
  { object, live }: { readonly object: CachedObject; readonly live: CachedObject },
): string | undefined {
  const isTenants = path.startsWith('spec.')
  const name = valueAt(isTenants ? object : live, path.split('.'))
  const owner = object.metadata.name ?? ''
  if (typeof name !== 'string' || !nameForm.test(name) || systemNames.has(name)) return undefined
  const isDerived = name === owner || name.startsWith(`${owner}-`) || name.startsWith(`${owner}.`)
  return isTenants || isDerived ? name : undefined
}

interface Subject {
  readonly apiName: string
  readonly name: string
  readonly object: CachedObject | undefined
}

/** Whether this upstream object was shown from this member for the custom resource. Only the installation can say so. */
export function isRelatedOf({ member }: Scope, { metadata }: CachedObject, { apiName, name }: Subject): boolean {
  const { annotations = {} } = metadata
  return annotations[memberAnnotation] === member.name && annotations[relatedToAnnotation] === `${apiName} ${name}`
}

/** Types of Secrets that mean something to an API server or kubelet of their own cluster. */
const systemTypes = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token']

/** Why the member may not show the object it has made; undefined if it may. */
export function mayShowRelated(
  scope: Scope,
  {
    made,
    shown,
    subject,
    resource,
  }: {
    readonly made: KubeObject
    /** The object of that name upstream. */
    readonly shown: KubeObject | undefined
    readonly subject: Subject
    readonly resource: RelatedReference['resource']
  },
): string | undefined {
  const what = `${resource === 'secrets' ? 'Secret' : 'ConfigMap'} "${made.metadata.name ?? ''}"`
  if (!scope.isOurs) return `${what} is not in a namespace of this logical cluster`
  if (locatorOf(made) !== undefined) return `${what} is a copy of the tenant's own`
  const { type } = made as { readonly type?: string }
  if (type !== undefined && systemTypes.includes(type)) return `${what} is of type ${type}, which is not shown`
  if (shown !== undefined && !isRelatedOf(scope, shown, subject))
    return `${what} exists in the logical cluster and is not of this object`
  return undefined
}
