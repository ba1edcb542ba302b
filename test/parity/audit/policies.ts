// Generated audit policies. All of them are in one Policy, each for one user: kube-apiserver reads one file at its start.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'

type Below = (bound: number) => number

const levels = ['None', 'Metadata', 'Request', 'RequestResponse', 'RequestResponse'] as const
const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const
const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'post'] as const
// Group * is for newer API servers: 1.34 refuses it.
const groups = ['', 'apps', 'authentication.k8s.io'] as const
const resources = [
  ...['configmaps', 'secrets', 'deployments', 'deployments/scale', 'deployments/*', '*/scale', '*/*', '*'],
  ...['serviceaccounts/token', '*/token', 'namespaces', 'subjectaccessreviews'],
]
const names = ['one', 'two', 'web', 'hidden', 'none'] as const
const urls = ['/api*', '/apis/apps/v1', '/version', '/healthz*', '*', '/ver*', '/apis'] as const

/** Rules for the requests of this user; `namespace`: the user's own. */
export function randomRules(below: Below, user: string, namespace: string): JsonObject[] {
  return Array.from({ length: 1 + below(4) }, () => randomRule(below, user, namespace))
}

function randomRule(below: Below, user: string, namespace: string): JsonObject {
  const some = <T extends JsonValue>(from: readonly T[]): T[] => {
    const found = Array.from({ length: 1 + below(3) }, () => pick(below, from))
    return [...new Set(found)]
  }
  const rule: JsonObject = { level: pick(below, levels), users: below(8) === 0 ? ['another', user] : [user] }
  if (below(5) === 0) rule['userGroups'] = below(3) === 0 ? ['nobodies'] : ['system:masters', 'nobodies']
  if (below(3) === 0) rule['verbs'] = some(verbs)
  if (below(4) === 0) rule['omitStages'] = some(stages)
  if (below(3) === 0) rule['omitManagedFields'] = below(2) === 0
  switch (below(5)) {
    case 0:
      rule['nonResourceURLs'] = some(urls)
      break
    case 1:
      rule['namespaces'] = some([namespace, '', 'default'])
      break
    case 2:
    case 3:
      rule['resources'] = Array.from({ length: 1 + below(2) }, () => {
        const list = below(4) === 0 ? [] : some(resources)
        return {
          group: pick(below, groups),
          ...(list.length > 0 && { resources: list }),
          ...(list.length > 0 && below(3) === 0 && { resourceNames: some(names) }),
        }
      })
      if (below(4) === 0) rule['namespaces'] = some([namespace, 'default'])
  }
  return rule
}

function pick<T>(below: Below, from: readonly T[]): T {
  return from[below(from.length)] as T
}
