// The choice of the offload thread for the next job of a logical cluster.

/** Two jobs: one computes while the other waits for its write to be durable. Both are of one logical cluster. */
const maxComputing = 2
/** Jobs of one thread, those included that wait for webhooks: each holds its object in the memory of the thread. */
const maxHeld = 16
/** Maximum of jobs of one logical cluster that wait for its webhooks, in all threads: others need the rest. */
const maxWaitingOfFlow = 4

interface ThreadWithJobs {
  readonly jobs: readonly { readonly flow: string; readonly calls: number }[]
}

/**
 * The thread for the next job of a logical cluster; undefined: it must wait; `another`: all are busy. Jobs of two
 * logical clusters are not started beside one another, so that a job that ends its thread takes no job of others with
 * it after their write. Only one that has waited for a webhook may go on beside a job of others.
 */
export function findThread<T extends ThreadWithJobs>(
  threads: readonly T[],
  { flow, waitingFlows }: { readonly flow: string; readonly waitingFlows: number },
): T | 'another' | undefined {
  const waiting = threads.flatMap(({ jobs }) => jobs).filter((job) => job.flow === flow && job.calls > 0)
  if (waiting.length >= maxWaitingOfFlow) return undefined
  let free: T | undefined
  for (const thread of threads) {
    if (thread.jobs.length >= maxHeld) continue
    const computing = thread.jobs.filter(({ calls }) => calls === 0)
    if (computing.length === 0) free ??= thread
    else if (computing[0]?.flow === flow)
      return computing.length < maxComputing && waitingFlows === 1 ? thread : undefined
  }
  return free ?? 'another'
}
