import { expect } from 'chai'
import { listOf } from '#apimachinery/quantity/index.ts'
import { requestsOf } from './workload-requests.ts'

describe('what the pods of a workload request', () => {
  const containers = [{ resources: { requests: { cpu: '100m', memory: '64Mi' } } }, { resources: {} }]
  const deployment = (parts: object): { kind: string } => ({
    kind: 'Deployment',
    ...{ spec: { template: { spec: { containers } }, ...parts } },
  })
  for (const { title, workload, expected } of [
    {
      title: 'is that of one pod by default',
      workload: deployment({}),
      expected: { cpu: '100m', memory: '64Mi', pods: '1' },
    },
    {
      title: 'grows with the replicas',
      workload: deployment({ replicas: 4 }),
      expected: { cpu: '400m', memory: '256Mi', pods: '4' },
    },
    {
      title: 'includes what a rolling update adds, rounded up',
      workload: deployment({ replicas: 5, strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%' } } }),
      expected: { cpu: '700m', memory: '448Mi', pods: '7' },
    },
    {
      title: 'is that of the pods of a Job that run at the same time',
      workload: { ...deployment({ parallelism: 3 }), kind: 'Job' },
      expected: { cpu: '300m', memory: '192Mi', pods: '3' },
    },
    {
      title: 'is nothing for a pod that has ended',
      workload: { kind: 'Pod', ...{ metadata: {}, spec: { containers }, status: { phase: 'Succeeded' } } },
      expected: { cpu: '0', memory: '0', pods: '0' },
    },
    {
      title: 'is nothing without pods',
      workload: deployment({ replicas: 0 }),
      expected: { cpu: '0', memory: '0', pods: '0' },
    },
  ]) {
    it(title, () => expect(listOf(requestsOf(workload))).to.deep.equal(expected))
  }
})
