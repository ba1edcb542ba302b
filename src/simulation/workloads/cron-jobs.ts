// CronJobs: Jobs at the times of a schedule, in UTC.
import { nextTime } from '#apimachinery/cron/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { controlledBy, keyOf, type CronJob, type Job } from '#simulation/cluster/objects.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { isFinished } from './jobs.ts'
import { isSameStatus } from './replica-sets.ts'

const by = 'cronjob-controller'

export function startCronJobs(simulation: Simulation): void {
  const { cronjobs, jobs } = simulation.cache
  simulation.loop({
    name: by,
    follow(enqueue) {
      cronjobs.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      jobs.onChange((after, before) => {
        const job = after ?? before
        const owner = job?.metadata.ownerReferences?.find(({ kind }) => kind === 'CronJob')
        if (owner !== undefined) enqueue(`${job?.metadata.namespace ?? ''}/${owner.name}`)
      })
    },
    reconcile: async (key) => {
      const cronJob = cronjobs.get(key)
      if (cronJob === undefined || cronJob.metadata.deletionTimestamp !== undefined) return undefined
      return await reconcileCronJob(simulation, cronJob)
    },
  })
}

async function reconcileCronJob(simulation: Simulation, cronJob: CronJob): Promise<ReconcileResult | undefined> {
  const { spec, metadata, status } = cronJob
  const since = Date.parse(status?.lastScheduleTime ?? metadata.creationTimestamp ?? '')
  const now = Date.now()
  const due = latestDue(spec.schedule, since, now)
  const startedAt =
    due !== undefined && spec.suspend !== true && (await start(simulation, cronJob, due)) ? due : undefined
  await removeHistory(simulation, cronJob)
  await writeStatus(simulation, cronJob, startedAt)
  const next = nextTime(spec.schedule, now)
  return next === undefined ? undefined : { requeueAfterSeconds: Math.min(3600, (next - now) / 1000 + 0.05) }
}

/** The latest time of the schedule after `sinceMs` that has passed; undefined if there is none. */
function latestDue(schedule: string, sinceMs: number, nowMs: number): number | undefined {
  // After a long pause, only the last hour is searched.
  let at = nextTime(schedule, Math.max(sinceMs, nowMs - 3_600_000))
  let due: number | undefined
  while (at !== undefined && at <= nowMs) {
    due = at
    at = nextTime(schedule, at)
  }
  return due
}

function jobsOf(simulation: Simulation, { metadata }: CronJob): Job[] {
  return simulation.cache.jobs.controlledBy(metadata.uid ?? '')
}

/** Starts the Job of this time. False: another Job still runs, and the concurrencyPolicy is `Forbid`. */
async function start(simulation: Simulation, cronJob: CronJob, dueMs: number): Promise<boolean> {
  const active = jobsOf(simulation, cronJob).filter((job) => !isFinished(job))
  if (active.length > 0 && cronJob.spec.concurrencyPolicy === 'Forbid') return false
  if (cronJob.spec.concurrencyPolicy === 'Replace')
    for (const job of active) await simulation.delete('jobs', job, { propagationPolicy: 'Background' })
  const { jobTemplate } = cronJob.spec
  const { name = '', namespace = '' } = cronJob.metadata
  const object: KubeObject = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...(jobTemplate.metadata?.labels && { labels: jobTemplate.metadata.labels }),
      annotations: {
        ...jobTemplate.metadata?.annotations,
        'batch.kubernetes.io/cronjob-scheduled-timestamp': timestamp(dueMs),
      },
      name: `${name}-${Math.floor(dueMs / 60_000)}`,
      namespace,
      ownerReferences: [controlledBy(cronJob)],
    },
    spec: jobTemplate.spec,
  }
  try {
    const made = await simulation.create('jobs', object)
    void simulation.event(cronJob, {
      type: 'Normal',
      reason: 'SuccessfulCreate',
      message: `Created job ${made.metadata.name ?? ''}`,
      by,
    })
  } catch (error) {
    if (!isStatusError(error, 'AlreadyExists')) throw error
  }
  return true
}

async function removeHistory(simulation: Simulation, cronJob: CronJob): Promise<void> {
  const ended = jobsOf(simulation, cronJob)
    .filter(isFinished)
    .sort((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''))
  const isComplete = ({ status }: Job): boolean => (status?.conditions ?? []).some(({ type }) => type === 'Complete')
  const surplus = [
    ...ended.filter(isComplete).slice(cronJob.spec.successfulJobsHistoryLimit ?? 3),
    ...ended.filter((job) => !isComplete(job)).slice(cronJob.spec.failedJobsHistoryLimit ?? 1),
  ]
  for (const job of surplus) await simulation.delete('jobs', job, { propagationPolicy: 'Background' })
}

async function writeStatus(simulation: Simulation, cronJob: CronJob, startedMs: number | undefined): Promise<void> {
  const jobs = jobsOf(simulation, cronJob)
  const active = jobs
    .filter((job) => !isFinished(job))
    .map(({ apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } }) => ({
      apiVersion,
      kind,
      name,
      namespace,
      uid,
      resourceVersion,
    }))
  const ends = jobs.flatMap(({ status }) => status?.completionTime ?? []).sort()
  const last = [cronJob.status?.lastSuccessfulTime ?? '', ...ends].sort().at(-1)
  const before = (cronJob.status as { active?: { uid?: string }[] } | undefined)?.active ?? []
  const isSame = before.map(({ uid }) => uid).join() === active.map(({ uid }) => uid).join()
  const status = {
    ...(!isSame && { active: active.length === 0 ? null : active }),
    ...(startedMs !== undefined && { lastScheduleTime: timestamp(startedMs) }),
    ...(last && { lastSuccessfulTime: last }),
  }
  if (Object.keys(status).length > 0 && !isSameStatus(cronJob.status, status))
    await simulation.patchStatus('cronjobs', cronJob, status)
}
