// The review APIs: requests that look like the creation of an object, but are answered and never stored. Each review is
// one function from the sent object and its sender to the object with a status.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { TokenReviewer } from '#virtualapi/auth/authn/token-reviewer.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

/** The context of a review. */
export interface ReviewContext {
  /** The requesting user. */
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  /** Namespace in the URL; empty for cluster-scoped reviews. */
  readonly namespace: string
  readonly authorizer: Pick<RbacAuthorizer, 'authorize' | 'rulesFor' | 'reviewed'>
  readonly tokenReviewer: TokenReviewer | undefined
  /** The remaining cost of the request. */
  readonly work: WorkBudget
  readonly signal: AbortSignal
  /** Wall clock in milliseconds since the epoch. */
  readonly now: number
}

/** Computes the status of a review. Does not change `object`. Rejects with 400 or 422 if the spec is invalid. */
export type Review = (object: KubeObject, context: ReviewContext) => Promise<KubeObject>

/** The review with this status; its members are in the order of kube-apiserver. */
export function answered({ kind, apiVersion, metadata, spec }: KubeObject, status: object): KubeObject {
  return { kind, apiVersion, metadata, ...(spec === undefined ? {} : { spec: withoutEmptyGroups(spec) }), status }
}

/** Go omits an empty list of groups. */
function withoutEmptyGroups(spec: unknown): unknown {
  if (!isJsonObject(spec) || !Array.isArray(spec['groups']) || spec['groups'].length > 0) return spec
  const { groups: _, ...rest } = spec
  return rest
}

/** The spec of a review; an empty object if there is none. */
export function specOf(object: KubeObject): Readonly<Record<string, unknown>> {
  return isJsonObject(object['spec']) ? object['spec'] : {}
}

/** The value if it is a string, else the empty string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The strings in a list; empty if the value is not a list. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** The user as authentication.k8s.io UserInfo. */
export function userInfoOf({ name, uid, groups, extra }: UserInfo): object {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}
