// The messages between a measurement and its across-client.ts.

/** Starts the controller over all logical clusters (`*`), or over the named ones with a watch for each. */
export interface StartAcross {
  readonly kubeconfig: string
  readonly logicalClusters: '*' | readonly string[]
  /** How many there are. */
  readonly objects: number
}

/** `lags`: of the reconciles since the last answer. `write`: reconciles every object and writes each of them once. */
export type ToAcrossClient = { readonly start: StartAcross } | 'lags' | 'write'

export interface Synced {
  /** From the start of the controller until all objects are known, and until each was reconciled, seconds. */
  readonly syncedSeconds: number
  readonly reconciledSeconds: number
  readonly objects: number
  /** More resident memory and heap than before the start, after the garbage collection that follows it. */
  readonly residentMiB: number
  readonly heapMiB: number
  /** Open connections to the server. */
  readonly connections: number
}

export interface Lags {
  /** Milliseconds from before a write was sent to its reconcile; of the noisy logical cluster and of the others. */
  readonly noisy: readonly number[]
  readonly others: readonly number[]
}

/** What it answers: each message is answered with one of these fields. */
export interface AcrossResponses {
  readonly synced: Synced
  readonly lags: Lags
  readonly wrote: { readonly seconds: number; readonly failed: number }
  /** Why it did not do what it was told. */
  readonly failure: string
}

export type FromAcrossClient = { [Field in keyof AcrossResponses]: Pick<AcrossResponses, Field> }[keyof AcrossResponses]

/** The logical cluster that writes as much as it can. */
export const noisyCluster = 'lc-0'
export const label = 'bench-across'
/** Objects of the noisy logical cluster. */
export const noisyObjects = 2000
export const objectName = (index: number): string => `object-${index}`
