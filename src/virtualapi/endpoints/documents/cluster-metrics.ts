// /metrics and /metrics/slis of one logical cluster. They are computed on request, so no counters are kept per logical
// cluster.
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { textResponse } from '#virtualapi/codec/responses.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { versionInfo } from '#virtualapi/discovery/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { requestsOfCluster } from '#virtualapi/flowcontrol/fairness.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { healthChecks } from './health.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

const priorityLevels = 'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io'
/** Maximum of priority levels; if there are more, the metrics of their seats are left out. */
const mostLevels = 1000
const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }

/** The metrics of this logical cluster alone, in the text format of Prometheus, by kube-apiserver's names. */
export function clusterMetrics(path: string, objects: ClusterObjects, dependencies: EndpointDependencies): ApiResponse {
  const lines = path === '/metrics' ? metricLines(objects, dependencies) : healthLines(dependencies)
  return { ...textResponse(`${lines.join('\n')}\n`), headers }
}

function metricLines(objects: ClusterObjects, { catalog }: EndpointDependencies): string[] {
  const { gitVersion = '', major = '', minor = '' } = versionInfo({ programVersion })
  const stored = new Map<string, number>()
  for (const info of catalog.all(objects)) {
    if (!info.verbs.includes('list')) continue
    const resource = info.group === '' ? info.resource : `${info.resource}.${info.group}`
    if (!stored.has(resource)) stored.set(resource, objects.list({ resource }).length)
  }
  const counts = [...stored].sort(([a], [b]) => (a < b ? -1 : 1))
  return [
    ...described('apiserver_storage_objects', '[STABLE] Number of stored objects, by resource.'),
    ...counts.map(([resource, count]) => sample('apiserver_storage_objects', { resource }, count)),
    ...seatLines(objects),
    ...described('kubernetes_build_info', '[ALPHA] The version that is served.'),
    sample('kubernetes_build_info', { git_version: gitVersion, major, minor }, 1),
  ]
}

function healthLines({ notReady }: EndpointDependencies): string[] {
  const problem = notReady()
  const endpoints = ['healthz', 'livez', 'readyz'] as const
  return [
    ...described('kubernetes_healthcheck', '[STABLE] The result of a health check, 1 for success.'),
    ...endpoints.flatMap((type) =>
      healthChecks(type, { problem, inCluster: true }).map((check) =>
        sample('kubernetes_healthcheck', { name: check.name, type }, Number(check.problem === undefined)),
      ),
    ),
  ]
}

/** The share of each priority level in the requests that a logical cluster may have under way. */
function seatLines(objects: ClusterObjects): string[] {
  if (objects.count({ resource: priorityLevels }) > mostLevels) return []
  const levels = objects.list({ resource: priorityLevels }).map(({ key, bytes }) => {
    const { limited, exempt } = decodeObject(bytes)['spec'] as Partial<Record<'limited' | 'exempt', Shares>>
    return { name: key.name, shares: (limited ?? exempt)?.nominalConcurrencyShares ?? 0 }
  })
  const all = levels.reduce((sum, { shares }) => sum + shares, 0)
  const name = 'apiserver_flowcontrol_nominal_limit_seats'
  const help = '[BETA] Nominal number of execution seats configured for each priority level.'
  return [
    ...described(name, help),
    ...levels.map((level) =>
      sample(name, { priority_level: level.name }, all === 0 ? 0 : Math.ceil((requestsOfCluster * level.shares) / all)),
    ),
  ]
}

interface Shares {
  readonly nominalConcurrencyShares?: number
}

function described(name: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`]
}

/** Label values are names of resources and versions, which have no character that must be escaped. */
function sample(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
  return `${name}{${pairs.join(',')}} ${value}`
}
