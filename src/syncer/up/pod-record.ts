// The record upstream of a pod that a controller of a member made: the labels by which Services, budgets and policies
// select the pod, and the names under which clients find it. Labels from the member could be those of another pod.
import { templateOf } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import type { PodRecord } from '#syncer/transform/up.ts'
import { jobLabels, jobNameLabels } from '#syncer/transform/workload-down.ts'
import type { Origin } from './origin.ts'
import { hashIn, writtenTemplate } from './written-template.ts'

interface Template {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: Pick<PodSpec, 'hostname' | 'subdomain'>
}
type Labels = Readonly<Record<string, string>>

/** The record of a pod whose controller is upstream. */
export function podRecord(scope: Scope, live: CachedObject, origin: Origin): PodRecord {
  const { workload, found } = origin
  const isOwnTemplate = found === workload
  const written = isOwnTemplate ? writtenTemplate(scope, workload, hashIn(scope, workload, live)) : undefined
  const { metadata, spec } = (written?.template ?? templateOf(found) ?? {}) as Template
  const { name = '' } = live.metadata
  const { serviceName } = (workload['spec'] ?? {}) as { serviceName?: string }
  const isOfSet = found.kind === 'StatefulSet'
  return {
    labels: { ...metadata?.labels, ...labelsOfController(found, live) },
    hostname: isOfSet ? name : found.kind === 'Job' ? hostnameInJob(found, live, spec) : spec?.hostname,
    subdomain: isOfSet ? serviceName || spec?.subdomain : spec?.subdomain,
  }
}

/**
 * The labels that the controller adds to those of the template. A value is taken from the member's pod where nothing
 * upstream tells it.
 */
function labelsOfController({ kind, metadata: { name = '', uid = '' } }: CachedObject, live: CachedObject): Labels {
  const own = live.metadata.labels ?? {}
  const kept = (...labels: readonly string[]): Labels =>
    Object.fromEntries(labels.flatMap((label) => (own[label] === undefined ? [] : [[label, own[label]]])))
  switch (kind) {
    case 'DaemonSet':
      return kept('controller-revision-hash', 'pod-template-generation')
    case 'StatefulSet': {
      const pod = live.metadata.name ?? ''
      const ordinal = { 'apps.kubernetes.io/pod-index': pod.slice(pod.lastIndexOf('-') + 1) }
      return {
        ...kept('controller-revision-hash'),
        'statefulset.kubernetes.io/pod-name': pod,
        ...(own['apps.kubernetes.io/pod-index'] !== undefined && ordinal),
      }
    }
    case 'Job':
      return {
        ...Object.fromEntries(jobLabels.filter((label) => own[label] !== undefined).map((label) => [label, uid])),
        ...Object.fromEntries(jobNameLabels.filter((label) => own[label] !== undefined).map((label) => [label, name])),
        ...kept('batch.kubernetes.io/job-completion-index'),
      }
    default:
      return {}
  }
}

/** The pods of an Indexed Job have its name and their index. */
function hostnameInJob(
  { metadata: { name = '' } }: CachedObject,
  live: CachedObject,
  written: Template['spec'],
): string | undefined {
  const { hostname } = (live['spec'] ?? {}) as { hostname?: string }
  const index = hostname === undefined ? undefined : /^(.*)-(?:0|[1-9]\d*)$/.exec(hostname)
  return index?.[1] !== undefined && index[1] !== '' && name.startsWith(index[1]) ? hostname : written?.hostname
}
