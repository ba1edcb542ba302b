// /livez, /readyz and /healthz, in the format of kube-apiserver. A logical cluster has kube-apiserver's checks; other
// paths have the checks of this process.
import { pageNotFound } from '#apimachinery/status/index.ts'
import { textResponse } from '#virtualapi/codec/responses.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { controlPlaneChecks, type HealthCheck, type HealthEndpoint } from './control-plane-checks.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

const plainOk = { ...textResponse('ok'), headers: { 'content-type': 'text/plain; charset=utf-8' } }

/**
 * The health of a logical cluster or of the process: 200, or 500 with all checks. `?verbose` lists the checks,
 * `?exclude=NAME` skips one; `/readyz/NAME` runs one. Throws 404 for a name that is no check.
 */
export function health(
  path: string,
  query: URLSearchParams,
  { notReady, inCluster }: Pick<EndpointDependencies, 'notReady'> & { readonly inCluster: boolean },
): ApiResponse {
  const [, endpoint = '', ...rest] = path.split('/')
  const checks = healthChecks(endpoint as HealthEndpoint, { problem: notReady(), inCluster })
  if (rest.length > 0) {
    const wanted = rest.join('/')
    const check = checks.find(({ name }) => name === wanted)
    if (check === undefined) throw pageNotFound()
    return check.problem === undefined ? plainOk : textResponse(`internal server error: ${check.problem}\n`, 500)
  }
  const excluded = new Set(query.getAll('exclude'))
  const failed = checks.some(({ name, problem }) => problem !== undefined && !excluded.has(name))
  if (!failed && !query.has('verbose')) return textResponse('ok')
  const lines = checks.map(({ name, problem }) => {
    if (excluded.delete(name)) return `[+]${name} excluded: ok`
    // A tenant learns which check failed, but not what is wrong with the process that serves all tenants.
    return problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${inCluster ? 'reason withheld' : problem}`
  })
  const unknown = [...excluded].sort().map((name) => JSON.stringify(name))
  if (unknown.length > 0) lines.push(`warn: some health checks cannot be excluded: no matches for ${unknown.join(',')}`)
  return textResponse(`${lines.join('\n')}\n${endpoint} check ${failed ? 'failed' : 'passed'}\n`, failed ? 500 : 200)
}

/** The checks of an endpoint, in order. `problem`: why the process is not ready. */
export function healthChecks(
  endpoint: HealthEndpoint,
  { problem, inCluster }: { readonly problem: string | undefined; readonly inCluster: boolean },
): HealthCheck[] {
  if (inCluster) return controlPlaneChecks(endpoint, problem)
  const ping = { name: 'ping', problem: undefined }
  // Liveness has no check of the storage: the process must not be restarted because its host cannot be reached.
  return endpoint === 'livez' ? [ping] : [ping, { name: 'storage', problem }]
}
