// How much memory an installation needs, from measured numbers. Pure: the page of the site runs it in a browser.

/** Numbers of the newest measurements. */
export interface Measured {
  /** MiB of an idle `kcp start`. */
  readonly idleMiB: number
  /** KiB of a logical cluster without objects of tenants, at its worst moment: shortly after 10,000 were created. */
  readonly perClusterKiB: number
  /** KiB of an object of a logical cluster that is in memory. */
  readonly perObjectKiB: number
  /** KiB of a watch. */
  readonly perWatchKiB: number
  /** CPU seconds of a thousand requests: GET of one object, creation of one object. */
  readonly cpuPerThousandReads: number
  readonly cpuPerThousandWrites: number
}

export interface Wanted {
  readonly clusters: number
  /** Logical clusters that are in memory at a time: those with a request in the last five minutes, or a watch. */
  readonly activeClusters: number
  readonly objectsPerCluster: number
  readonly watches: number
  readonly readsPerSecond: number
  readonly writesPerSecond: number
}

export interface Size {
  readonly memoryMiB: number
  readonly cores: number
  /** Objects in the store, in MiB, at 2 KiB each. */
  readonly storageMiB: number
}

/** Memory for garbage and for peaks, and processor time for anything but requests. */
const [memoryReserve, cpuReserve] = [1.5, 2]
/** What an object counts in a store: its bytes and half a KiB. */
const storedKiB = 2

/** The size of one replica that does all the work. */
export function sizeOf(wanted: Wanted, measured: Measured): Size {
  const { clusters, activeClusters, objectsPerCluster, watches, readsPerSecond, writesPerSecond } = wanted
  const kib =
    clusters * measured.perClusterKiB +
    Math.min(activeClusters, clusters) * objectsPerCluster * measured.perObjectKiB +
    watches * measured.perWatchKiB
  const cpu = (readsPerSecond * measured.cpuPerThousandReads + writesPerSecond * measured.cpuPerThousandWrites) / 1000
  return {
    memoryMiB: Math.ceil((measured.idleMiB + kib / 1024) * memoryReserve),
    cores: Math.max(0.5, Math.ceil(cpu * cpuReserve * 10) / 10),
    storageMiB: Math.ceil((clusters * objectsPerCluster * storedKiB) / 1024),
  }
}
