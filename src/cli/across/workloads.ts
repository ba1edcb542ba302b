// Workloads as people name them on the command line, and their copies while they move.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { workloadKinds, type WorkloadKind } from '#crds/index.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import type { Direct } from './direct.ts'

const shortNames: Readonly<Record<WorkloadKind['gvr']['resource'], string | undefined>> = {
  deployments: 'deploy',
  statefulsets: 'sts',
  daemonsets: 'ds',
  replicasets: 'rs',
  replicationcontrollers: 'rc',
  cronjobs: 'cj',
  pods: 'po',
  jobs: undefined,
}

/**
 * Finds a kind of workload by its kind, its resource or kubectl's short name, in any case, with or without the group.
 */
export function tryWorkloadKind(text: string): WorkloadKind | undefined {
  const [wanted = '', ...group] = text.toLowerCase().split('.')
  return workloadKinds.find(
    ({ kind, gvr }) =>
      [kind.toLowerCase(), gvr.resource, shortNames[gvr.resource]].includes(wanted) &&
      (group.length === 0 || group.join('.') === gvr.group),
  )
}

/** `KIND/NAME` of a workload. Throws UsageError that lists the kinds. */
export function parseWorkload(text: string): { readonly kind: WorkloadKind; readonly name: string } {
  const [kindText = '', name = ''] = text.split('/')
  const kind = tryWorkloadKind(kindText)
  if (kind !== undefined && name !== '') return { kind, name }
  throw new UsageError(`"${text}" is not KIND/NAME of a workload; kinds: ${workloadKindNames().join(', ')}`)
}

/** The kinds of workloads, in lower case. */
export function workloadKindNames(): string[] {
  return workloadKinds.map((row) => row.kind.toLowerCase())
}

/** All workloads of a namespace, as a logical cluster has them. */
export async function workloadsIn(
  { client, signal }: Direct,
  cluster: string,
  namespace?: string,
): Promise<KubeObject[]> {
  const lists = await Promise.all(
    workloadKinds.map(async ({ gvr, kind, apiVersion }) => {
      const { items } = await client(cluster).list(gvr, { signal, ...(namespace !== undefined && { namespace }) })
      // Items of a list have no kind of their own.
      return items.map((item) => ({ ...item, kind, apiVersion }))
    }),
  )
  return lists.flat()
}
