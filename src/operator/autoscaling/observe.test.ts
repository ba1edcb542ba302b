import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { measure, type PodMetrics } from './observe.ts'

/** A pod with the CPU that each of its containers requests. */
function pod(name: string, requests: Readonly<Record<string, string | undefined>>): KubeObject {
  const containers = Object.entries(requests).map(([container, cpu]) => ({
    name: container,
    ...(cpu !== undefined && { resources: { requests: { cpu } } }),
  }))
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers }, status: { phase: 'Running' } }
}

/** The metrics of a pod: the CPU that each of its containers uses. */
function metricsOf(name: string, used: Readonly<Record<string, string>>): [string, PodMetrics] {
  const containers = Object.entries(used).map(([container, cpu]) => ({ name: container, usage: { cpu } }))
  const metadata = { name }
  return [name, { apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetrics', metadata, window: '15s', containers }]
}

const milli = (count: number): bigint => BigInt(count) * 1_000_000n

describe('the pods of an autoscaler with what they use', () => {
  it('are told in thousandths of a core, each container rounded up as kube-controller-manager does', () => {
    const metrics = new Map([metricsOf('web', { main: '566423n', sidecar: '1200001n' })])
    const [measured] = measure([pod('web', { main: '50m', sidecar: '500u' })], metrics, 'cpu', undefined)
    expect(measured?.usage?.nanos).to.equal(milli(1 + 2))
    expect(measured?.request).to.equal(milli(50 + 1))
  })

  it('count as not measured without the container that is asked for, which others have', () => {
    const pods = [pod('old', { main: '50m' }), pod('new', { main: '50m', cache: '20m' })]
    const metrics = new Map([metricsOf('old', { main: '5m' }), metricsOf('new', { main: '5m', cache: '10m' })])
    const [old, young] = measure(pods, metrics, 'cpu', 'cache')
    expect([old?.usage, old?.request]).to.deep.equal([undefined, 0n])
    expect([young?.usage?.nanos, young?.request]).to.deep.equal([milli(10), milli(20)])
  })

  it('name the container that requests nothing', () => {
    const metrics = new Map([metricsOf('web', { main: '5m', sidecar: '5m' })])
    const [measured] = measure([pod('web', { main: '50m', sidecar: undefined })], metrics, 'cpu', undefined)
    expect(measured?.request).to.deep.equal({ missingIn: 'sidecar' })
  })

  it('are not told where none of them is measured', () => {
    const metrics = new Map([metricsOf('other', { main: '5m' })])
    expect(() => measure([pod('web', { main: '50m' })], metrics, 'cpu', undefined)).to.throw(
      'unable to get metrics for resource cpu: no metrics returned from resource metrics API',
    )
  })
})
