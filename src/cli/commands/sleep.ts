// `kcp sleep NAME` and `kcp wake NAME`: orders to a logical cluster, and the hold that keeps it asleep or awake.
import { logicalClusters, sleepOrderAnnotation, wakeOrderAnnotation } from '#crds/index.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly hold?: true
}

interface Order {
  readonly annotation: string
  /** What `--hold` writes to spec.sleep.asleep. */
  readonly held: boolean
  readonly done: string
  readonly doneHeld: string
}

const orders = {
  sleep: {
    annotation: sleepOrderAnnotation,
    held: true,
    done: 'falls asleep, until the first write of its users or kcp wake',
    doneHeld: 'falls asleep, until kcp wake',
  },
  wake: {
    annotation: wakeOrderAnnotation,
    held: false,
    done: 'wakes up',
    doneHeld: 'wakes up, and stays awake until kcp sleep',
  },
} as const satisfies Record<string, Order>

/** The run of one of the two commands. */
export function runOrder(order: keyof typeof orders): (text: string, flags: Flags) => Promise<void> {
  const { annotation, held, done, doneHeld } = orders[order]
  return async (text, flags) => {
    const signal = processSignal()
    const name = nameOfLogicalCluster(text)
    await using installation = await openInstallation(flags, signal)
    const { metadata } = await logicalClusterOf(installation, name, signal)
    // Any new value is an order; the time is there for people.
    const annotations = { [annotation]: new Date().toISOString() }
    const sleep = { asleep: flags.hold ? held : null }
    const patch = { metadata: { uid: metadata.uid, annotations }, spec: { sleep } }
    await installation.clusters.patch(logicalClusters, { name }, 'merge', patch, { signal })
    console.log(`logical cluster "${name}" ${flags.hold ? doneHeld : done}`)
  }
}
