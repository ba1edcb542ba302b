// Jobs: pods until enough of them have succeeded, or too many have failed.
import type { ReconcileResult } from '#reconcile/index.ts'
import { keyOf, type Condition, type Job, type Pod } from '#simulation/cluster/objects.ts'
import { hasEnded, isReady } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { createPod, deletePod, followOwnedPods } from './pod-control.ts'
import { isSameStatus } from './replica-sets.ts'

const by = 'job-controller'
const trackingFinalizer = 'batch.kubernetes.io/job-tracking'
const indexAnnotation = 'batch.kubernetes.io/job-completion-index'
/** Delay before a failed pod is replaced, doubled with each failure. */
const [firstBackoffSeconds, maxBackoffSeconds] = [10, 600]

export function startJobs(simulation: Simulation): void {
  const { jobs } = simulation.cache
  simulation.loop({
    name: by,
    follow(enqueue) {
      jobs.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      followOwnedPods(simulation, 'Job', enqueue)
    },
    reconcile: async (key) => {
      const job = jobs.get(key)
      if (job === undefined || job.metadata.deletionTimestamp !== undefined || isFinished(job)) return undefined
      return await reconcileJob(simulation, job)
    },
  })
}

export function isFinished({ status }: Job): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status: is }) => (type === 'Complete' || type === 'Failed') && is === 'True',
  )
}

interface Counted {
  readonly pods: readonly Pod[]
  readonly active: readonly Pod[]
  readonly succeeded: number
  readonly failed: number
}

function count(simulation: Simulation, job: Job): Counted {
  const pods = simulation.cache.pods.controlledBy(job.metadata.uid ?? '')
  const succeeded = pods.filter(({ status }) => status?.phase === 'Succeeded')
  const done = job.spec.completionMode === 'Indexed' ? new Set(succeeded.map(indexOf)).size : succeeded.length
  const failed = pods.filter(({ status }) => status?.phase === 'Failed').length
  const { succeeded: knownDone = 0, failed: knownFailed = 0 } = job.status ?? {}
  const active = pods.filter(
    ({ status, metadata }) => !hasEnded(status?.phase) && metadata.deletionTimestamp === undefined,
  )
  // Pods that were deleted after they ended still count.
  return { pods, active, succeeded: Math.max(done, knownDone), failed: Math.max(failed, knownFailed) }
}

async function reconcileJob(simulation: Simulation, job: Job): Promise<ReconcileResult | undefined> {
  const counted = count(simulation, job)
  const end = endOf(job, counted)
  if (end !== undefined || job.spec.suspend === true) {
    if (end !== undefined) await finish(simulation, { job, counted, end })
    else await suspend(simulation, { job, counted })
    return undefined
  }
  const again = await fill(simulation, { job, counted })
  const status = { startTime: job.status?.startTime ?? simulation.now(), ...numbersOf(count(simulation, job)) }
  const resumed = conditionOf(job, 'Suspended')?.status === 'True'
  const conditions = resumed
    ? { conditions: [{ ...written('Suspended', 'JobResumed', 'Job resumed', simulation.now()), status: 'False' }] }
    : {}
  await writeStatus(simulation, job, { ...status, ...conditions })
  const deadline = job.spec.activeDeadlineSeconds
  return again ?? (deadline === undefined ? undefined : { requeueAfterSeconds: deadline })
}

interface End {
  readonly type: 'Complete' | 'Failed'
  readonly reason: string
  readonly message: string
}

function endOf(job: Job, { active, succeeded, failed, pods }: Counted): End | undefined {
  const { completions, backoffLimit = 6, activeDeadlineSeconds } = job.spec
  const restarts = pods.reduce((sum, { status }) => sum + (status?.containerStatuses?.[0]?.restartCount ?? 0), 0)
  if (failed > backoffLimit || (job.spec.template.spec.restartPolicy === 'OnFailure' && restarts > backoffLimit))
    return { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
  const started = Date.parse(job.status?.startTime ?? '')
  if (activeDeadlineSeconds !== undefined && Date.now() - started > activeDeadlineSeconds * 1000)
    return { type: 'Failed', reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  const isComplete = completions === undefined ? succeeded > 0 && active.length === 0 : succeeded >= completions
  return isComplete
    ? { type: 'Complete', reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' }
    : undefined
}

async function finish(
  simulation: Simulation,
  { job, counted, end }: { readonly job: Job; readonly counted: Counted; readonly end: End },
): Promise<void> {
  for (const pod of counted.active) await deletePod(simulation, job, pod, by)
  await release(simulation, counted.pods)
  const now = simulation.now()
  const first = end.type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget'
  const conditions = [written(first, end.reason, end.message, now), written(end.type, end.reason, end.message, now)]
  await writeStatus(simulation, job, {
    startTime: job.status?.startTime ?? now,
    ...(end.type === 'Complete' && { completionTime: now }),
    ...numbersOf({ ...counted, active: [] }),
    conditions,
  })
  const [type, reason] =
    end.type === 'Complete' ? (['Normal', 'Completed'] as const) : (['Warning', end.reason] as const)
  const message = end.type === 'Complete' ? 'Job completed' : end.message
  void simulation.event(job, { type, reason, message, by })
}

async function suspend(
  simulation: Simulation,
  { job, counted }: { readonly job: Job; readonly counted: Counted },
): Promise<void> {
  for (const pod of counted.active) await deletePod(simulation, job, pod, by)
  const known = conditionOf(job, 'Suspended')
  const condition = written('Suspended', 'JobSuspended', 'Job suspended', known?.lastTransitionTime ?? simulation.now())
  await writeStatus(simulation, job, {
    ...numbersOf({ ...counted, active: [] }),
    startTime: null,
    conditions: [condition],
  })
}

/** Makes missing pods. After a failure it waits, longer each time. */
async function fill(
  simulation: Simulation,
  { job, counted }: { readonly job: Job; readonly counted: Counted },
): Promise<ReconcileResult | undefined> {
  const { parallelism = 1, completions, completionMode, template } = job.spec
  const { active, succeeded, failed, pods } = counted
  const left = completions === undefined ? (succeeded > 0 ? 0 : parallelism) : completions - succeeded
  const missing = Math.min(parallelism, left) - active.length
  const waitMs = missing > 0 && failed > 0 ? backoffMs(pods, failed) : 0
  if (waitMs > 0) return { requeueAfterSeconds: waitMs / 1000 }
  const used = new Set([...active, ...pods.filter(({ status }) => status?.phase === 'Succeeded')].map(indexOf))
  const free = Array.from({ length: completions ?? 0 }, (_, index) => String(index)).filter((index) => !used.has(index))
  const labels = {
    'batch.kubernetes.io/controller-uid': job.metadata.uid ?? '',
    'batch.kubernetes.io/job-name': job.metadata.name ?? '',
    'controller-uid': job.metadata.uid ?? '',
    'job-name': job.metadata.name ?? '',
  }
  const tracked = { ...template, metadata: { ...template.metadata, finalizers: [trackingFinalizer] } }
  for (let i = 0; i < missing; i++) {
    const index = free[i]
    const indexed =
      completionMode === 'Indexed' && index !== undefined ? { annotations: { [indexAnnotation]: index } } : {}
    const indexLabel = completionMode === 'Indexed' && index !== undefined ? { [indexAnnotation]: index } : {}
    await createPod(simulation, job, tracked, { labels: { ...labels, ...indexLabel }, ...indexed, by })
  }
  return undefined
}

function backoffMs(pods: readonly Pod[], failed: number): number {
  const ends = pods.flatMap(({ status }) => (status?.phase === 'Failed' ? [lastChange(status.conditions)] : []))
  const seconds = Math.min(maxBackoffSeconds, firstBackoffSeconds * 2 ** (failed - 1))
  return Math.max(0, Math.max(0, ...ends) + seconds * 1000 - Date.now())
}

function lastChange(conditions: readonly Condition[] = []): number {
  return Math.max(0, ...conditions.map(({ lastTransitionTime }) => Date.parse(lastTransitionTime ?? '') || 0))
}

/** Removes the finalizer by which a Job counts its pods. */
async function release(simulation: Simulation, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    const { finalizers = [] } = pod.metadata
    if (finalizers.includes(trackingFinalizer))
      await simulation.patch('pods', pod, {
        metadata: { finalizers: finalizers.filter((one) => one !== trackingFinalizer) },
      })
  }
}

function indexOf({ metadata }: Pod): string {
  return metadata.annotations?.[indexAnnotation] ?? metadata.name ?? ''
}

function numbersOf({ active, succeeded, failed }: Counted): Record<string, unknown> {
  const ready = active.filter(isReady).length
  return { active: active.length, ready, succeeded, failed, terminating: 0, uncountedTerminatedPods: {} }
}

function conditionOf({ status }: Job, wanted: string): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === wanted)
}

function written(type: string, reason: string, message: string, now: string): Condition {
  return { type, status: 'True', reason, message, lastProbeTime: now, lastTransitionTime: now }
}

async function writeStatus(simulation: Simulation, job: Job, status: Readonly<Record<string, unknown>>): Promise<void> {
  if (!isSameStatus(job.status, status)) await simulation.patchStatus('jobs', job, status)
}

/** Releases pods of Jobs that are deleted: nobody counts them any more. */
export function startPodRelease(simulation: Simulation): void {
  const { pods, jobs } = simulation.cache
  simulation.loop({
    name: 'job-pod-release',
    follow(enqueue) {
      pods.onChange((after) => {
        if (after?.metadata.finalizers?.includes(trackingFinalizer) === true) enqueue(keyOf(after))
      })
      jobs.onChange((after, before) => {
        if (after === undefined && before !== undefined)
          for (const pod of pods.controlledBy(before.metadata.uid ?? '')) enqueue(keyOf(pod))
      })
    },
    reconcile: async (key) => {
      const pod = pods.get(key)
      const owner = pod?.metadata.ownerReferences?.find(({ kind }) => kind === 'Job')
      if (pod === undefined || owner === undefined) return
      const job = jobs.get(`${pod.metadata.namespace ?? ''}/${owner.name}`)
      const isCounted =
        job?.metadata.uid === owner.uid && job.metadata.deletionTimestamp === undefined && !isFinished(job)
      const mustGo = !isCounted || (pod.metadata.deletionTimestamp !== undefined && !hasEnded(pod.status?.phase))
      if (mustGo) await release(simulation, [pod])
    },
  })
}
