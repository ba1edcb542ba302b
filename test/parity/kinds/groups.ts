// The kinds of the named groups.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const labels = { app: 'web' }
const container = { name: 'main', image: 'nginx:1.27' }
const podSpec = (rest: JsonObject = {}): JsonObject => ({ containers: [container], ...rest })
const template = { metadata: { labels }, spec: podSpec() }
const jobTemplate = { spec: podSpec({ restartPolicy: 'Never' }) }
const meta = (rest: JsonObject = {}): JsonObject => ({ labels, ...rest })
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })
const selector = { matchLabels: labels }

export const workloadRows: readonly Row[] = [
  ...kindRows({
    object: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta(), spec: { replicas: 2, selector, template } },
    others: [
      ['nothing', { spec: null }],
      ['a selector that does not match', { spec: { selector: { matchLabels: { x: 'y' } } } }],
      ['an empty selector', { spec: { selector: { matchLabels: null } } }],
      [
        'numbers below zero',
        { spec: { replicas: -1, minReadySeconds: -1, revisionHistoryLimit: -1, progressDeadlineSeconds: -1 } },
      ],
      ['a deadline below readiness', { spec: { minReadySeconds: 10, progressDeadlineSeconds: 5 } }],
      ['an unknown strategy', { spec: { strategy: { type: 'Huh' } } }],
      ['Recreate with numbers', { spec: { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } } }],
      ['nothing may go or come', { spec: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } } }],
      ['invalid percentages', { spec: { strategy: { rollingUpdate: { maxSurge: 'x', maxUnavailable: '200%' } } } }],
      ['a restart policy', { spec: { template: { spec: { restartPolicy: 'OnFailure', activeDeadlineSeconds: 5 } } } }],
      [
        'invalid template labels',
        { spec: { template: { metadata: { labels: { 'a b': 'c d' }, annotations: { 'A b': 'x' } } } } },
      ],
      ['ephemeral containers', { spec: { template: { spec: { ephemeralContainers: [{ name: 'a', image: 'b' }] } } } }],
      ['a status', { status: { replicas: 5 } }],
    ],
    updates: [
      ['replicas', { spec: { replicas: 3 } }],
      [
        'the selector',
        { spec: { selector: { matchLabels: { app: 'other' } }, template: { metadata: { labels: { app: 'other' } } } } },
      ],
      ['the image', { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } }],
      ['paused', { spec: { paused: true } }],
      ['a status through the main door', { status: { replicas: 9 } }],
    ],
    parts: [
      [
        'status',
        'replicas',
        {
          status: {
            replicas: 2,
            updatedReplicas: 2,
            readyReplicas: 1,
            availableReplicas: 1,
            unavailableReplicas: 1,
            observedGeneration: 1,
            conditions: [{ type: 'Available', status: 'True', reason: 'R', message: 'M' }],
          },
        },
      ],
      [
        'status',
        'more than the replicas',
        {
          status: { replicas: 1, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 4, terminatingReplicas: -1 },
        },
      ],
      ['status', 'negative', { status: { replicas: -1, observedGeneration: -1, collisionCount: -1 } }],
      [
        'status',
        'a collision count',
        {
          status: {
            replicas: 2,
            readyReplicas: 1,
            availableReplicas: 1,
            updatedReplicas: 2,
            terminatingReplicas: null,
            observedGeneration: 1,
            collisionCount: 3,
          },
        },
      ],
      ['status', 'a smaller collision count', { status: { collisionCount: 2 } }],
      ['status', 'labels', { metadata: { labels: { via: 'status' }, annotations: { via: 'status' } } }],
      ['scale', 'up', { spec: { replicas: 5 } }],
      ['scale', 'below zero', { spec: { replicas: -5 } }],
      ['scale', 'with another name', { metadata: { name: 'other' } }],
    ],
  }),
  ...kindRows({
    object: { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: meta(), spec: { replicas: 2, selector, template } },
    others: [
      ['nothing', { spec: null }],
      ['a selector that does not match', { spec: { selector: { matchLabels: { x: 'y' } } } }],
      ['numbers below zero', { spec: { replicas: -1, minReadySeconds: -1 } }],
      ['a restart policy', { spec: { template: { spec: { restartPolicy: 'Never' } } } }],
      [
        'an invalid expression',
        {
          spec: {
            selector: {
              matchExpressions: [
                { key: 'a', operator: 'Huh' },
                { key: 'b b', operator: 'In' },
                { key: 'c', operator: 'Exists', values: ['x'] },
              ],
            },
          },
        },
      ],
    ],
    updates: [
      ['replicas', { spec: { replicas: 3 } }],
      ['the selector', { spec: { selector: { matchLabels: { app: null, x: 'y' } } } }],
      ['the template', { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } }],
    ],
    parts: [
      [
        'status',
        'replicas',
        {
          status: {
            replicas: 2,
            readyReplicas: 1,
            fullyLabeledReplicas: 2,
            availableReplicas: 1,
            observedGeneration: 1,
          },
        },
      ],
      [
        'status',
        'more than the replicas',
        { status: { replicas: 1, fullyLabeledReplicas: 5, readyReplicas: 6, availableReplicas: 7 } },
      ],
      ['scale', 'up', { spec: { replicas: 5 } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: meta(),
      spec: {
        serviceName: 'web',
        selector,
        template,
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'unknown policies',
        {
          spec: {
            podManagementPolicy: 'x',
            updateStrategy: { type: 'y' },
            persistentVolumeClaimRetentionPolicy: { whenDeleted: 'z' },
          },
        },
      ],
      [
        'OnDelete with a partition',
        { spec: { updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } } },
      ],
      [
        'numbers below zero',
        {
          spec: {
            replicas: -1,
            minReadySeconds: -1,
            ordinals: { start: -1 },
            revisionHistoryLimit: -1,
            updateStrategy: { rollingUpdate: { partition: -1, maxUnavailable: 0 } },
          },
        },
      ],
      ['no service', { spec: { serviceName: '' } }],
      ['an invalid service name', { spec: { serviceName: 'A_' } }],
      ['a restart policy', { spec: { template: { spec: { restartPolicy: 'Never', activeDeadlineSeconds: 3 } } } }],
      ['claims without anything', { spec: { volumeClaimTemplates: [{}] } }],
    ],
    updates: [
      ['replicas', { spec: { replicas: 3 } }],
      ['the service', { spec: { serviceName: 'other' } }],
      ['the claims', { spec: { volumeClaimTemplates: [] } }],
      ['the policy', { spec: { podManagementPolicy: 'Parallel' } }],
      ['the image', { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } }],
      ['ordinals', { spec: { ordinals: { start: 2 } } }],
      [
        'retention',
        { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' } } },
      ],
      ['revision history', { spec: { revisionHistoryLimit: 3 } }],
    ],
    parts: [
      [
        'status',
        'replicas',
        {
          status: {
            replicas: 2,
            readyReplicas: 1,
            currentReplicas: 1,
            updatedReplicas: 1,
            availableReplicas: 1,
            observedGeneration: 1,
            currentRevision: 'a',
            updateRevision: 'b',
          },
        },
      ],
      [
        'status',
        'more than the replicas',
        { status: { replicas: 1, readyReplicas: 5, currentReplicas: 6, updatedReplicas: 7, availableReplicas: 8 } },
      ],
      ['status', 'negative', { status: { replicas: -1, collisionCount: -1, observedGeneration: -1 } }],
      ['scale', 'up', { spec: { replicas: 5 } }],
    ],
  }),
  ...kindRows({
    object: { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: meta(), spec: { selector, template } },
    others: [
      ['nothing', { spec: null }],
      ['nothing may go or come', { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } } }],
      ['both', { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } } } }],
      ['an unknown strategy', { spec: { updateStrategy: { type: 'x' } } }],
      ['numbers below zero', { spec: { minReadySeconds: -1, revisionHistoryLimit: -1 } }],
      ['a restart policy', { spec: { template: { spec: { restartPolicy: 'Never' } } } }],
      ['a selector that does not match', { spec: { selector: { matchLabels: { x: 'y' } } } }],
      ['a generation', { metadata: { annotations: { 'deprecated.daemonset.template.generation': '5' } } }],
    ],
    updates: [
      ['the image', { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } }],
      ['the selector', { spec: { selector: { matchLabels: { x: 'y' } } } }],
      ['the strategy', { spec: { updateStrategy: { type: 'OnDelete', rollingUpdate: null } } }],
    ],
    parts: [
      [
        'status',
        'numbers',
        {
          status: {
            currentNumberScheduled: 1,
            desiredNumberScheduled: 1,
            numberMisscheduled: 0,
            numberReady: 1,
            observedGeneration: 1,
          },
        },
      ],
      [
        'status',
        'negative',
        {
          status: {
            currentNumberScheduled: -1,
            desiredNumberScheduled: -1,
            numberMisscheduled: -1,
            numberReady: -1,
            updatedNumberScheduled: -1,
            numberAvailable: -1,
            numberUnavailable: -1,
          },
        },
      ],
      ['status', 'a status alone', { status: { numberUnavailable: 1 } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: meta(),
      revision: 1,
      data: { spec: { a: 'b' } },
    },
    others: [
      ['no data', { data: null }],
      ['a negative revision', { revision: -1 }],
      ['raw data', { data: [1, 2] }],
      ['text data', { data: 'x' }],
    ],
    updates: [
      ['the revision', { revision: 2 }],
      ['a smaller revision', { revision: -2 }],
      ['the data', { data: { spec: { a: 'c' } } }],
    ],
  }),
  ...kindRows({
    object: { apiVersion: 'batch/v1', kind: 'Job', metadata: meta(), spec: { template: jobTemplate } },
    others: [
      ['nothing', { spec: null }],
      [
        'numbers below zero',
        {
          spec: {
            parallelism: -1,
            completions: -1,
            backoffLimit: -1,
            activeDeadlineSeconds: -1,
            ttlSecondsAfterFinished: -1,
          },
        },
      ],
      ['a selector', { spec: { selector } }],
      ['a manual selector', { spec: { manualSelector: true, selector, template: { metadata: { labels } } } }],
      [
        'a manual selector that does not match',
        { spec: { manualSelector: true, selector: { matchLabels: { x: 'y' } } } },
      ],
      ['Always', { spec: { template: { spec: { restartPolicy: 'Always' } } } }],
      [
        'indexed',
        {
          spec: {
            completionMode: 'Indexed',
            completions: 3,
            backoffLimitPerIndex: 1,
            maxFailedIndexes: 2,
            parallelism: 2,
          },
        },
      ],
      ['indexed without completions', { spec: { completionMode: 'Indexed' } }],
      ['an unknown mode', { spec: { completionMode: 'Huh', podReplacementPolicy: 'x' } }],
      ['a per-index limit without an index', { spec: { backoffLimitPerIndex: 1, maxFailedIndexes: 5 } }],
      ['too many', { spec: { completionMode: 'Indexed', completions: 200000, parallelism: 150000 } }],
      [
        'a failure policy',
        {
          spec: {
            podFailurePolicy: {
              rules: [
                { action: 'FailJob', onExitCodes: { operator: 'In', values: [1, 2] } },
                { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] },
              ],
            },
          },
        },
      ],
      [
        'an invalid failure policy',
        {
          spec: {
            podFailurePolicy: {
              rules: [
                { action: 'Huh' },
                { action: 'Count', onExitCodes: { containerName: 'no', operator: 'Maybe', values: [0, 2, 1] } },
                {
                  action: 'FailIndex',
                  onPodConditions: [{ type: '', status: 'X' }],
                  onExitCodes: { operator: 'In', values: [] },
                },
              ],
            },
          },
        },
      ],
      [
        'a failure policy with OnFailure',
        { spec: { template: { spec: { restartPolicy: 'OnFailure' } }, podFailurePolicy: { rules: [] } } },
      ],
      ['a success policy', { spec: { successPolicy: { rules: [] } } }],
      [
        'a success policy of an indexed one',
        {
          spec: {
            completionMode: 'Indexed',
            completions: 3,
            successPolicy: {
              rules: [{ succeededIndexes: '0-9' }, { succeededCount: 9 }, {}, { succeededIndexes: 'x' }],
            },
          },
        },
      ],
      ['managed by another controller', { spec: { managedBy: 'a' } }],
      ['suspended', { spec: { suspend: true } }],
      [
        'reserved labels',
        {
          spec: { template: { metadata: { labels: { 'batch.kubernetes.io/job-name': 'x', 'controller-uid': 'y' } } } },
        },
      ],
    ],
    updates: [
      ['parallelism', { spec: { parallelism: 3 } }],
      ['completions', { spec: { completions: 3 } }],
      ['the template', { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } }],
      ['the selector', { spec: { selector: { matchLabels: { x: 'y' } } } }],
      ['suspend', { spec: { suspend: true } }],
      ['the mode', { spec: { completionMode: 'Indexed', completions: 1 } }],
      ['ttl', { spec: { ttlSecondsAfterFinished: 5 } }],
      ['managedBy', { spec: { managedBy: 'a.b/c' } }],
    ],
    parts: [
      ['status', 'started', { status: { startTime: '2020-01-01T00:00:00Z', active: 1, ready: 1 } }],
      ['status', 'complete without a time', { status: { conditions: [{ type: 'Complete', status: 'True' }] } }],
      [
        'status',
        'complete',
        {
          status: {
            active: 0,
            ready: 0,
            completionTime: '2020-01-01T00:01:00Z',
            succeeded: 1,
            conditions: [
              {
                type: 'SuccessCriteriaMet',
                status: 'True',
                lastTransitionTime: '2020-01-01T00:00:00Z',
                lastProbeTime: '2020-01-01T00:00:00Z',
              },
              {
                type: 'Complete',
                status: 'True',
                lastTransitionTime: '2020-01-01T00:00:00Z',
                lastProbeTime: '2020-01-01T00:00:00Z',
              },
            ],
          },
        },
      ],
      ['status', 'complete no more', { status: { conditions: [] } }],
      [
        'status',
        'failed besides',
        {
          status: {
            conditions: [
              { type: 'Complete', status: 'True' },
              { type: 'Failed', status: 'True' },
            ],
          },
        },
      ],
      ['status', 'negative', { status: { active: -1, succeeded: -1, failed: -1, ready: -1, terminating: -1 } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: meta(),
      spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: jobTemplate } } },
    },
    others: [
      ['nothing', { spec: null }],
      ['no schedule', { spec: { schedule: '' } }],
      ['an invalid schedule', { spec: { schedule: 'every day' } }],
      ['a schedule macro', { spec: { schedule: '@every 1h' } }],
      ['a time zone in the schedule', { spec: { schedule: 'TZ=UTC 0 0 * * *' } }],
      ['a time zone', { spec: { timeZone: 'Europe/Berlin' } }],
      ['an unknown time zone', { spec: { timeZone: 'Mars/Base' } }],
      ['an empty time zone', { spec: { timeZone: '' } }],
      [
        'policies and numbers',
        {
          spec: {
            concurrencyPolicy: 'x',
            successfulJobsHistoryLimit: -1,
            failedJobsHistoryLimit: -1,
            startingDeadlineSeconds: -1,
          },
        },
      ],
      ['Always', { spec: { jobTemplate: { spec: { template: { spec: { restartPolicy: 'Always' } } } } } }],
      ['a manual selector', { spec: { jobTemplate: { spec: { manualSelector: true, selector } } } }],
      ['a long name', { metadata: { name: 'x'.repeat(53) } }],
    ],
    updates: [
      ['the schedule', { spec: { schedule: '0 0 * * *' } }],
      ['suspend', { spec: { suspend: true } }],
      [
        'the template',
        { spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: 'main', image: 'x' }] } } } } } },
      ],
    ],
    parts: [
      [
        'status',
        'last time',
        { status: { lastScheduleTime: '2020-01-01T00:00:00Z', active: [{ kind: 'Job', name: 'x' }] } },
      ],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: meta(),
      spec: {
        minReplicas: 1,
        maxReplicas: 5,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } } },
          { type: 'Pods', pods: { metric: { name: 'x' }, target: { type: 'AverageValue', averageValue: '5' } } },
        ],
        behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
      },
    },
    alsoAs: ['autoscaling/v1'],
    others: [
      ['nothing', { spec: null }],
      ['min above max', { spec: { minReplicas: 9 } }],
      ['zero', { spec: { minReplicas: 0, maxReplicas: 0 } }],
      ['no target', { spec: { scaleTargetRef: { apiVersion: '', kind: '', name: '' } } }],
      ['an invalid target', { spec: { scaleTargetRef: { apiVersion: 'a/b/c', kind: 'a/b', name: 'c/d' } } }],
      [
        'invalid metrics',
        {
          spec: {
            metrics: [
              { type: 'Huh' },
              { type: '' },
              { type: 'Resource' },
              { type: 'Resource', resource: { name: '', target: { type: '' } } },
              {
                type: 'Resource',
                resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 0, averageValue: '1' } },
              },
              { type: 'Pods', pods: { metric: { name: '' }, target: { type: 'Value', value: '1' } } },
              {
                type: 'Object',
                object: { metric: { name: 'x' }, target: { type: 'Value' }, describedObject: { kind: '', name: '' } },
              },
              {
                type: 'External',
                external: { metric: { name: 'x' }, target: { type: 'Value', value: '-1', averageValue: '1' } },
              },
            ],
          },
        },
      ],
      [
        'two sources in a metric',
        {
          spec: {
            metrics: [
              {
                type: 'Resource',
                resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 5 } },
                pods: { metric: { name: 'x' }, target: { type: 'AverageValue', averageValue: '1' } },
              },
            ],
          },
        },
      ],
      [
        'invalid behavior',
        {
          spec: {
            behavior: {
              scaleUp: {
                stabilizationWindowSeconds: 5000,
                selectPolicy: 'x',
                policies: [
                  { type: 'x', value: 0, periodSeconds: 0 },
                  { type: 'Pods', value: 1, periodSeconds: 5000 },
                ],
              },
            },
          },
        },
      ],
      ['tolerance', { spec: { behavior: { scaleUp: { tolerance: '100m' } } } }],
      ['no metrics', { spec: { metrics: null, behavior: null } }],
    ],
    updates: [
      ['max', { spec: { maxReplicas: 9 } }],
      ['the target', { spec: { scaleTargetRef: { name: 'other' } } }],
    ],
    parts: [
      [
        'status',
        'replicas',
        {
          status: {
            currentReplicas: 1,
            desiredReplicas: 2,
            currentMetrics: [
              {
                type: 'Resource',
                resource: { name: 'cpu', current: { averageUtilization: 50, averageValue: '100m' } },
              },
            ],
            conditions: [{ type: 'AbleToScale', status: 'True' }],
          },
        },
      ],
      ['status', 'negative', { status: { currentReplicas: -1, desiredReplicas: -1 } }],
    ],
  }),
  ...kindRows(
    {
      object: {
        apiVersion: 'autoscaling/v1',
        kind: 'HorizontalPodAutoscaler',
        metadata: { name: 'old-$ID' },
        spec: {
          maxReplicas: 5,
          scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
          targetCPUUtilizationPercentage: 50,
        },
      },
      alsoAs: ['autoscaling/v2'],
      others: [
        ['a cpu of zero', { spec: { targetCPUUtilizationPercentage: 0 } }],
        ['none', { spec: { targetCPUUtilizationPercentage: null } }],
        [
          'annotations of v2',
          {
            metadata: {
              annotations: {
                'autoscaling.alpha.kubernetes.io/metrics':
                  '[{"type":"Pods","pods":{"metricName":"x","targetAverageValue":"5"}}]',
                'autoscaling.alpha.kubernetes.io/behavior': '{"ScaleUp":{"StabilizationWindowSeconds":3}}',
              },
            },
          },
        ],
        ['invalid annotations', { metadata: { annotations: { 'autoscaling.alpha.kubernetes.io/metrics': '{' } } }],
      ],
      updates: [['cpu', { spec: { targetCPUUtilizationPercentage: 70 } }]],
      parts: [
        [
          'status',
          'replicas',
          { status: { currentReplicas: 1, desiredReplicas: 2, currentCPUUtilizationPercentage: 40 } },
        ],
      ],
    },
    'v1',
  ),
]

const peer = { podSelector: { matchLabels: labels } }

export const networkRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: meta(),
      spec: {
        rules: [
          {
            host: 'a.example.com',
            http: {
              paths: [{ path: '/x', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
            },
          },
        ],
      },
    },
    others: [
      ['nothing', { spec: null }],
      ['no rules', { spec: { rules: null } }],
      ['invalid hosts', { spec: { rules: [{ host: 'A_' }, { host: '*.x' }, { host: 'a.*.b' }, { host: '1.2.3.4' }] } }],
      [
        'invalid paths',
        {
          spec: {
            rules: [
              {
                http: {
                  paths: [
                    { path: 'x', pathType: 'Exact', backend: {} },
                    { path: '/a//b', pathType: 'Prefix', backend: { service: { name: '', port: {} } } },
                    { path: '/x', pathType: 'Huh', backend: { resource: { kind: '', name: '' } } },
                    {
                      path: '/x',
                      backend: {
                        service: { name: 'a', port: { name: 'b', number: 3 } },
                        resource: { kind: 'x', name: 'y' },
                      },
                    },
                  ],
                },
              },
            ],
          },
        },
      ],
      ['no paths', { spec: { rules: [{ http: { paths: [] } }] } }],
      [
        'the old class annotation and the new',
        { metadata: { annotations: { 'kubernetes.io/ingress.class': 'a' } }, spec: { ingressClassName: 'b' } },
      ],
      ['invalid tls', { spec: { tls: [{ hosts: ['A_', '*.a.b'], secretName: 'B_' }] } }],
      ['an invalid class name', { spec: { ingressClassName: 'A_' } }],
      [
        'a default backend',
        { spec: { rules: null, defaultBackend: { service: { name: 'web', port: { name: 'http' } } } } },
      ],
      [
        'an invalid default backend',
        { spec: { defaultBackend: { service: { name: 'A_', port: { number: 70000 } } } } },
      ],
    ],
    updates: [
      ['the host', { spec: { rules: [{ host: 'b.example.com' }] } }],
      ['the class', { spec: { ingressClassName: 'x' } }],
    ],
    parts: [
      [
        'status',
        'an address',
        {
          status: {
            loadBalancer: { ingress: [{ ip: '1.2.3.4' }, { hostname: 'a.b', ports: [{ port: 80, protocol: 'TCP' }] }] },
          },
        },
      ],
      [
        'status',
        'an invalid address',
        { status: { loadBalancer: { ingress: [{ ip: 'x' }, { hostname: 'A_' }, { hostname: '1.2.3.4' }] } } },
      ],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IngressClass',
      metadata: wide('class'),
      spec: { controller: 'example.com/x', parameters: { kind: 'Params', name: 'p', apiGroup: 'example.com' } },
    },
    others: [
      ['nothing', { spec: null }],
      ['an invalid controller', { spec: { controller: 'x y' } }],
      ['a long controller', { spec: { controller: `a.b/${'x'.repeat(250)}` } }],
      [
        'invalid parameters',
        { spec: { parameters: { kind: '', name: '', scope: 'x', namespace: 'y', apiGroup: 'A_' } } },
      ],
      ['namespaced parameters without one', { spec: { parameters: { scope: 'Namespace' } } }],
      ['cluster parameters with one', { spec: { parameters: { scope: 'Cluster', namespace: 'x' } } }],
    ],
    updates: [
      ['the controller', { spec: { controller: 'example.com/y' } }],
      ['the parameters', { spec: { parameters: { name: 'q' } } }],
      [
        'the default annotation',
        { metadata: { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } } },
      ],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: meta(),
      spec: { podSelector: {}, ingress: [{ from: [peer], ports: [{ port: 80 }] }] },
    },
    others: [
      ['nothing', { spec: null }],
      [
        'invalid peers',
        {
          spec: {
            ingress: [
              {
                from: [
                  {},
                  { ...peer, ipBlock: { cidr: '10.0.0.0/8' } },
                  { ipBlock: { cidr: 'x' } },
                  { ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/8', '10.0.0.0/8', 'y'] } },
                  { ipBlock: { cidr: '' } },
                ],
              },
            ],
          },
        },
      ],
      [
        'invalid ports',
        {
          spec: {
            egress: [
              {
                ports: [
                  { port: 0 },
                  { port: 'A_' },
                  { protocol: 'x' },
                  { port: 5, endPort: 3 },
                  { endPort: 5 },
                  { port: 'a', endPort: 7 },
                ],
              },
            ],
          },
        },
      ],
      ['invalid types', { spec: { policyTypes: ['Huh', 'Ingress', 'Egress'] } }],
      ['two types', { spec: { egress: [{}], policyTypes: ['Egress', 'Ingress'] } }],
      [
        'IPv6 blocks',
        { spec: { ingress: [{ from: [{ ipBlock: { cidr: '2001:db8::/32', except: ['2001:db9::/48'] } }] }] } },
      ],
      [
        'an odd block',
        { spec: { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.1/8', except: ['10.010.0.0/16'] } }] }] } },
      ],
    ],
    updates: [['egress', { spec: { egress: [{}] } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: meta(),
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true }, targetRef: { kind: 'Pod', name: 'x' } }],
      ports: [{ name: 'http', port: 80 }],
    },
    others: [
      ['nothing', { addressType: null, endpoints: null, ports: null }],
      [
        'invalid addresses',
        {
          endpoints: [
            { addresses: ['x', '::1', '127.0.0.1'] },
            { addresses: [] },
            { addresses: ['10.0.0.1'], hostname: 'A_', nodeName: 'B_', zone: 'x', deprecatedTopology: { 'a b': 'c' } },
            { addresses: ['10.0.0.1', '10.0.0.1'] },
          ],
        },
      ],
      [
        'invalid ports',
        {
          ports: [
            { name: 'A_', protocol: 'x', port: 0 },
            { name: 'http' },
            { name: 'http' },
            { name: 'x', appProtocol: '/' },
          ],
        },
      ],
      [
        'hints',
        {
          endpoints: [
            {
              addresses: ['10.0.0.1'],
              hints: { forZones: [{ name: 'a' }, { name: 'a' }, { name: 'b c' }], forNodes: [{ name: 'A_' }] },
            },
          ],
        },
      ],
      ['many addresses', { endpoints: [{ addresses: Array.from({ length: 101 }, (_, i) => `10.0.0.${i + 1}`) }] }],
      ['names', { addressType: 'FQDN', endpoints: [{ addresses: ['a.b', 'A_'] }] }],
      ['IPv6', { addressType: 'IPv6', endpoints: [{ addresses: ['2001:db8::1', '10.0.0.1'] }] }],
      ['a service label', { metadata: { labels: { 'kubernetes.io/service-name': 'x' } } }],
    ],
    updates: [
      ['the address type', { addressType: 'IPv6', endpoints: [] }],
      ['endpoints', { endpoints: [{ addresses: ['10.1.2.4'] }] }],
      ['labels alone', { metadata: { labels: { a: 'b' } } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'ServiceCIDR',
      metadata: wide('cidr'),
      spec: { cidrs: ['10.240.0.0/24'] },
    },
    others: [
      ['nothing', { spec: null }],
      ['invalid cidrs', { spec: { cidrs: ['x', '10.0.0.1/24', '10.0.0.0/24'] } }],
      ['two of the same family', { spec: { cidrs: ['10.240.0.0/24', '10.241.0.0/24'] } }],
      ['two families', { spec: { cidrs: ['10.240.0.0/24', '2001:db8::/112'] } }],
    ],
    updates: [
      ['the range', { spec: { cidrs: ['10.250.0.0/24'] } }],
      ['another family', { spec: { cidrs: ['10.240.0.0/24', '2001:db8::/112'] } }],
    ],
    parts: [
      [
        'status',
        'ready',
        {
          status: {
            conditions: [
              { type: 'Ready', status: 'True', reason: 'R', message: 'M', lastTransitionTime: '2020-01-01T00:00:00Z' },
            ],
          },
        },
      ],
      ['status', 'wrong', { status: { conditions: [{ type: 'a b', status: 'x', reason: '1', message: '' }] } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IPAddress',
      metadata: { name: '10.240.0.9' },
      spec: { parentRef: { resource: 'services', name: 'x', namespace: 'y' } },
    },
    others: [
      ['an invalid name', { metadata: { name: 'x' } }],
      ['a name that is not canonical', { metadata: { name: '010.1.2.3' } }],
      ['nothing', { metadata: { name: '10.240.0.8' }, spec: null }],
      ['no parent', { metadata: { name: '10.240.0.8' }, spec: { parentRef: { resource: '', name: '' } } }],
      [
        'an invalid parent',
        {
          metadata: { name: '10.240.0.8' },
          spec: { parentRef: { resource: 'A_', group: 'B_', namespace: 'C_', name: 'd/e' } },
        },
      ],
    ],
    updates: [['the parent', { spec: { parentRef: { name: 'z' } } }]],
  }),
]

export const nodeRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: wide('run'),
      handler: 'runc',
      overhead: { podFixed: { cpu: '100m' } },
      scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'a', operator: 'Exists' }] },
    },
    others: [
      ['an invalid handler', { handler: 'A_' }],
      ['no handler', { handler: '' }],
      ['invalid overhead', { overhead: { podFixed: { cpu: '-1', x: '1' } } }],
      [
        'invalid scheduling',
        {
          scheduling: {
            nodeSelector: { 'a b': 'c d' },
            tolerations: [
              { key: 'a', operator: 'Huh' },
              { key: 'a', operator: 'Exists' },
              { key: 'a', operator: 'Exists' },
            ],
          },
        },
      ],
    ],
    updates: [
      ['the handler', { handler: 'x' }],
      ['the overhead', { overhead: { podFixed: { cpu: '200m' } } }],
    ],
  }),
]

const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]
const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }
const subjects = [{ kind: 'User', name: 'u', apiGroup: 'rbac.authorization.k8s.io' }]
const ruleOthers: [string, JsonObject][] = [
  ['no rules', { rules: null }],
  [
    'invalid rules',
    {
      rules: [
        {},
        { verbs: ['get'] },
        { apiGroups: [''], verbs: ['get'] },
        { nonResourceURLs: ['/x'], resources: ['a'], apiGroups: [''], verbs: ['get'] },
        { nonResourceURLs: ['x'], verbs: ['get'] },
        { apiGroups: [''], resources: ['a'], verbs: [] },
      ],
    },
  ],
  [
    'names and wildcards',
    { rules: [{ apiGroups: ['*'], resources: ['*/scale'], verbs: ['*'], resourceNames: ['a'] }] },
  ],
]
const bindingOthers: [string, JsonObject][] = [
  ['no subjects', { subjects: null }],
  [
    'invalid subjects',
    {
      subjects: [
        { kind: 'X', name: 'a' },
        { kind: 'User', name: '', apiGroup: 'x' },
        { kind: 'ServiceAccount', name: 'a' },
        { kind: 'ServiceAccount', name: 'A_', namespace: '$NS', apiGroup: 'y' },
        { kind: 'Group' },
      ],
    },
  ],
  ['an invalid reference', { roleRef: { apiGroup: 'x', kind: 'Y', name: '' } }],
  ['a role that does not exist', { roleRef: { name: 'nobody-has-this' } }],
]
export const rbacRows: readonly Row[] = [
  ...kindRows({
    object: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: meta(), rules },
    others: [...ruleOthers, ['urls', { rules: [{ nonResourceURLs: ['/x'], verbs: ['get'] }] }]],
    updates: [['rules', { rules: [] }]],
  }),
  ...kindRows({
    object: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'role:$ID' }, rules },
    others: [
      ...ruleOthers,
      ['urls', { rules: [{ nonResourceURLs: ['/x'], verbs: ['get'] }] }],
      ['an invalid aggregation', { aggregationRule: {} }],
      [
        'invalid selectors',
        { aggregationRule: { clusterRoleSelectors: [{ matchExpressions: [{ key: 'a', operator: 'Huh' }] }] } },
      ],
      ['a name with a slash', { metadata: { name: 'a/b' } }],
      ['a name with a percent', { metadata: { name: 'a%b' } }],
    ],
    updates: [
      ['rules', { rules: [] }],
      ['aggregation', { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] }, rules: null }],
    ],
  }),
  ...kindRows({
    object: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: meta(), roleRef, subjects },
    others: bindingOthers,
    updates: [
      ['the reference', { roleRef: { name: 'edit' } }],
      ['subjects', { subjects: [] }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'bind:$ID' },
      roleRef,
      subjects,
    },
    others: bindingOthers,
    updates: [
      ['the reference', { roleRef: { name: 'edit' } }],
      ['subjects', { subjects: [] }],
    ],
  }),
]
