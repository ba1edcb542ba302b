// The logical clusters that the session may see, live while a page shows them.
import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ClusterSleep, ClusterSleepStatus, ClusterUsage } from '#crds/index.ts'
import { pause } from '#console/kube/follow.ts'
import { messageOf, requestJson } from '#console/kube/request.ts'

export interface ClusterItem {
  readonly name: string
  readonly phase?: string
  readonly ready?: boolean
  readonly reason?: string
  readonly message?: string
  readonly created?: string
  readonly parent?: string
  /** Since when and why it is asleep, and what wakes it; absent while it is awake. */
  readonly asleep?: string
  /** Whether its objects are in memory. */
  readonly loaded?: boolean
  readonly usage?: {
    readonly objects?: number
    readonly bytes?: number
    readonly watches?: number
  }
  /** Its limits, and what it uses of them; absent without limits. */
  readonly limits?: Readonly<Record<string, string | number>>
  readonly used?: Readonly<ClusterUsage>
  /** Which limits are near or reached. */
  readonly near?: string
  /** Its rules of sleep, and what they have led to. */
  readonly sleep?: Readonly<ClusterSleep & ClusterSleepStatus>
  readonly audit?: { readonly readable: boolean; readonly hasWebhook: boolean; readonly problem?: string }
}

const pollMs = 5000

export const clusters = signal<readonly ClusterItem[]>([])
export const clustersError = signal('')
export const clustersKnown = signal(false)
export const clusterNames = computed(() => clusters.value.map(({ name }) => name))

/** Reads the list again and again until the signal is aborted, while the page is visible. */
export async function followClusters(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (document.visibilityState === 'visible')
      await readClusters(signal).catch((error: unknown) => {
        if (!signal.aborted) clustersError.value = messageOf(error)
      })
    await pause(pollMs, signal)
  }
}

/** Keeps the list live while the part is shown. */
export function useClusters(): void {
  useEffect(() => {
    const life = new AbortController()
    void followClusters(life.signal)
    return () => life.abort()
  }, [])
}

export async function readClusters(signal?: AbortSignal): Promise<void> {
  const { items } = await requestJson<{ items: readonly ClusterItem[] }>('api/clusters', {
    ...(signal !== undefined && { signal }),
  })
  clusters.value = items
  clustersKnown.value = true
  clustersError.value = ''
}
