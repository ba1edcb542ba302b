// /metrics and /metrics/slis of one logical cluster, computed when they are asked for: nothing is counted per logical cluster.
import type { ClusterObjects } from '../../store/hub/index.ts'
import { textAnswer } from '../codec/answers.ts'
import type { Answer } from '../exchange/exchange.ts'
import { versionInfo } from '../discovery/index.ts'
import { programVersion } from '../../telemetry/index.ts'
import type { EndpointParts } from './parts.ts'

const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }

/** The metrics of this logical cluster alone, in the text format of Prometheus, by kube-apiserver's names. */
export function clusterMetrics(path: string, objects: ClusterObjects, parts: EndpointParts): Answer {
  const lines = path === '/metrics' ? metricLines(objects, parts) : healthLines(parts)
  return { ...textAnswer(`${lines.join('\n')}\n`), headers }
}

function metricLines(objects: ClusterObjects, { catalog }: EndpointParts): string[] {
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
    ...described('kubernetes_build_info', '[ALPHA] The version that is served.'),
    sample('kubernetes_build_info', { git_version: gitVersion, major, minor }, 1),
  ]
}

function healthLines({ notReady }: EndpointParts): string[] {
  const isReady = notReady() === undefined
  const checks = [
    { name: 'ping', type: 'livez', passed: true },
    { name: 'ping', type: 'readyz', passed: true },
    { name: 'storage', type: 'readyz', passed: isReady },
  ]
  return [
    ...described('kubernetes_healthcheck', '[STABLE] The result of a health check, 1 for success.'),
    ...checks.map(({ name, type, passed }) => sample('kubernetes_healthcheck', { name, type }, Number(passed))),
  ]
}

function described(name: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`]
}

/** Label values are names of resources and versions, which have no character that must be escaped. */
function sample(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
  return `${name}{${pairs.join(',')}} ${value}`
}
