// Defaults of the workload kinds, outside their pod template.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { fill, filling, objectIn, objectsIn, type DefaultFunctions } from './default-functions.ts'

export const workloadDefaults: DefaultFunctions = {
  'apps.v1.Deployment': ({ spec }) => {
    fill(spec as JsonObject, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 })
  },
  'apps.v1.DeploymentStrategy': (strategy) => {
    fill(strategy, { type: 'RollingUpdate' })
    if (strategy['type'] !== 'RollingUpdate') return
    fill(strategy, { rollingUpdate: {} })
    fill(objectIn(strategy, 'rollingUpdate'), { maxUnavailable: '25%', maxSurge: '25%' })
  },
  'apps.v1.DaemonSetSpec': filling({ revisionHistoryLimit: 10 }),
  'apps.v1.DaemonSetUpdateStrategy': (strategy) => {
    fill(strategy, { type: 'RollingUpdate' })
    if (strategy['type'] !== 'RollingUpdate') return
    fill(strategy, { rollingUpdate: {} })
    fill(objectIn(strategy, 'rollingUpdate'), { maxUnavailable: 1, maxSurge: 0 })
  },
  'apps.v1.StatefulSetSpec': (spec) => {
    fill(spec, {
      podManagementPolicy: 'OrderedReady',
      replicas: 1,
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: {},
    })
    fill(objectIn(spec, 'persistentVolumeClaimRetentionPolicy'), { whenDeleted: 'Retain', whenScaled: 'Retain' })
    for (const claim of objectsIn(spec, 'volumeClaimTemplates'))
      Object.assign(claim, { apiVersion: 'v1', kind: 'PersistentVolumeClaim' })
  },
  'apps.v1.StatefulSetUpdateStrategy': (strategy) => {
    if (strategy['type'] === undefined) fill(strategy, { type: 'RollingUpdate', rollingUpdate: {} })
    if (strategy['type'] === 'RollingUpdate' && strategy['rollingUpdate'] !== undefined)
      fill(objectIn(strategy, 'rollingUpdate'), { partition: 0 })
  },
  'apps.v1.ReplicaSetSpec': filling({ replicas: 1 }),
  'core.v1.ReplicationController': (controller) => {
    const spec = objectIn(controller, 'spec')
    const labels = objectIn(objectIn(objectIn(spec, 'template'), 'metadata'), 'labels')
    if (Object.keys(labels).length > 0) {
      fill(spec, { selector: labels })
      fill(objectIn(controller, 'metadata'), { labels })
    }
    fill(spec, { replicas: 1 })
  },
  'batch.v1.Job': (job) => {
    const spec = objectIn(job, 'spec')
    jobSpecDefaults(spec)
    const { labels } = objectIn(objectIn(spec, 'template'), 'metadata')
    if (labels !== undefined) fill(objectIn(job, 'metadata'), { labels })
  },
  'batch.v1.CronJobSpec': filling({
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  }),
  'batch.v1.PodFailurePolicyOnPodConditionsPattern': (pattern) => {
    if (pattern['status'] === '') pattern['status'] = 'True'
  },
}

function jobSpecDefaults(spec: JsonObject): void {
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) spec['completions'] = 1
  fill(spec, {
    parallelism: 1,
    backoffLimit: spec['backoffLimitPerIndex'] === undefined ? 6 : 2 ** 31 - 1,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed',
    manualSelector: false,
  })
}
