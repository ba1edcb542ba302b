import { expect } from 'chai'
import { causesOf } from '#virtualapi/kinds/validation/vocabulary.ts'
import { serviceRule } from './service-validation.ts'
import type { Service } from './service-types.ts'

type Port = NonNullable<Service['spec']['ports']>[number]

const serviceOf = (ports: readonly Port[]): Service =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a', namespace: 'default' },
    spec: { type: 'ClusterIP', sessionAffinity: 'None', ports },
  }) as unknown as Service
const serviceCauses = (service: Service) => causesOf(serviceRule, '', service, undefined)
const port = (index: number, name: string): Port => ({ name, port: index + 1, protocol: 'TCP', targetPort: 80 })

describe('the ports of a Service', () => {
  it('are refused from the second of the same name on', () => {
    const causes = serviceCauses(serviceOf(['a', 'b', 'a', 'a'].map((name, index) => port(index, name))))
    const repeated = causes.filter(({ reason }) => reason === 'FieldValueDuplicate').map(({ field }) => field)
    expect(repeated).to.deep.equal(['spec.ports[2].name', 'spec.ports[3].name'])
  })

  it('are each read a few times, however many there are', () => {
    const count = 2000
    let reads = 0
    const ports = Array.from({ length: count }, (_, i) =>
      Object.defineProperty(port(i, ''), 'name', {
        get: () => {
          reads++
          return `n${i}`
        },
      }),
    )
    expect(serviceCauses(serviceOf(ports)).filter(({ reason }) => reason === 'FieldValueDuplicate')).to.deep.equal([])
    expect(reads).to.be.within(count, 10 * count)
  })
})
