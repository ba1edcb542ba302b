// A member with real controllers and one simulated node: its pods only report that they run.
import { sleep } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createInformer, type KubeClient } from '#client/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import { silentLogger } from '#telemetry/index.ts'

const nodes = { group: '', version: 'v1', resource: 'nodes' }
const pods = { group: '', version: 'v1', resource: 'pods' }

export interface SimulatedKubelet {
  /** Pods whose name begins with the prefix stay Pending. */
  hold(prefix: string): void
  release(): void
}

/** Gives every pod an address and makes it Ready at once, until the signal aborts. */
export function simulateKubelet(
  client: KubeClient,
  { subnet, signal }: { subnet: string; signal: AbortSignal },
): SimulatedKubelet {
  const informer = createInformer<KubeObject>({ client, gvr: pods, log: silentLogger, signal })
  const queue = createKeyQueue()
  const nodeName = 'played'
  void simulateNode(client, nodeName, signal)
  let held: string | undefined
  let next = 1
  informer.onChange(({ key }) => queue.add(key))
  void runController({
    name: 'played-kubelet',
    queue,
    log: silentLogger,
    signal,
    reconcile: async (key, life) => {
      const pod = informer.store.get(key)
      const { name = '', namespace = '' } = pod?.metadata ?? {}
      if (pod === undefined || (held !== undefined && name.startsWith(held))) return
      const status = pod['status'] as { podIP?: string } | undefined
      if (pod.metadata.deletionTimestamp !== undefined) {
        await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0, signal: life })
        return
      }
      if (status?.podIP !== undefined) return
      const target = { apiVersion: 'v1', kind: 'Node', name: nodeName }
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { namespace, name }, target }
      await client.create(pods, binding, { subresource: 'binding', signal: life })
      const podIP = `${subnet}.${next++}`
      const now = new Date().toISOString().replace(/\.\d+/, '')
      const conditions = ['Ready', 'ContainersReady', 'Initialized', 'PodScheduled'].map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: now,
      }))
      const patch = { status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions, startTime: now } }
      await client.patch(pods, { namespace, name }, 'merge', patch, { subresource: 'status', signal: life })
    },
  })
  return {
    hold: (prefix) => void (held = prefix),
    release: () => {
      held = undefined
      for (const key of informer.store.keys()) queue.add(key)
    },
  }
}

/** Keeps a node Ready until the signal aborts. */
async function simulateNode(client: KubeClient, name: string, signal: AbortSignal): Promise<void> {
  try {
    await client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } }, { signal })
    for (;;) {
      const now = new Date().toISOString().replace(/\.\d+/, '')
      const ready = {
        type: 'Ready',
        status: 'True',
        reason: 'Played',
        message: '',
        lastHeartbeatTime: now,
        lastTransitionTime: now,
      }
      await client.patch(
        nodes,
        { name },
        'merge',
        { status: { conditions: [ready] } },
        { subresource: 'status', signal },
      )
      await sleep(10_000, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
