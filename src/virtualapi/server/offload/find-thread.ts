// The choice of the offload thread for the next job of a logical cluster.

/**
 * Maximum of jobs of one thread that do not wait for webhooks: one computes while the other waits for its write to
 * become durable. Both belong to one logical cluster.
 */
const maxComputing = 2
/**
 * Maximum of jobs of one thread, including jobs that wait for webhooks: each holds its object in the memory of the
 * thread.
 */
const maxHeld = 16
/**
 * Maximum of jobs of one logical cluster that wait for its webhooks, in all threads together: the rest is left for
 * other logical clusters.
 */
const maxWaitingOfFlow = 4

interface ThreadWithJobs {
  readonly jobs: readonly { readonly flow: string; readonly calls: number }[]
}

/**
 * The thread for the next job of the logical cluster `flow`. Undefined: the job must wait. `another`: all threads are
 * busy. Jobs of two logical clusters are not started on the same thread, because a job that ends its thread would also
 * end jobs of others after their write. Only a job that has waited for a webhook may go on beside a job of another
 * logical cluster.
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
