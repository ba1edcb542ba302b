// Rules of single kinds: what keeps an object of this kind from its purpose although no condition says so.
import { copiesOf } from './copies.ts'
import { countOf, listOf, recordOf, textOf, type Finding, type SeenObject, type Subject } from './finding.ts'
import type { Surroundings } from './surroundings.ts'

type Rule = (object: SeenObject, subject: Subject, around: Surroundings) => readonly Finding[]

/** The findings of the rules of its kind. */
export function kindFindings(object: SeenObject, subject: Subject, around: Surroundings): readonly Finding[] {
  return Object.hasOwn(rules, object.kind) ? (rules[object.kind]?.(object, subject, around) ?? []) : []
}

const rules: Readonly<Record<string, Rule>> = {
  Deployment: (object, subject) => [...replicas(object, subject), ...paused(object, subject)],
  StatefulSet: (object, subject) => replicas(object, subject),
  ReplicaSet: (object, subject) => replicas(object, subject),
  ReplicationController: (object, subject) => replicas(object, subject),
  DaemonSet: (object, subject) => daemons(object, subject),
  CronJob: suspended,
  Job: suspended,
  Service: service,
  Ingress: ingress,
  PersistentVolumeClaim: claim,
}

function replicas(object: SeenObject, subject: Subject): Finding[] {
  const { replicas: wanted = 1 } = recordOf(object['spec'])
  const { readyReplicas, observedGeneration } = recordOf(object['status'])
  const [want, ready] = [countOf(wanted), countOf(readyReplicas)]
  // Without a copy, the placement says why nothing runs.
  if (want > 0 && copiesOf(object).length === 0) return []
  if (want === 0)
    return [{ subject, state: 'note', what: 'spec.replicas is 0: no pod should run', todo: scaleTodo(object) }]
  if (ready >= want) return [{ subject, state: 'well', what: `${ready} of ${want} replicas are ready` }]
  const isUnseen = countOf(object.metadata.generation) > countOf(observedGeneration)
  const why = isUnseen ? 'a controller to see the last change of its spec' : 'its pods to be ready'
  return [{ subject, state: 'waits', what: `${ready} of ${want} replicas are ready`, waitsFor: why }]
}

function scaleTodo({ kind, metadata }: SeenObject): string {
  return `kubectl scale ${kind.toLowerCase()} ${metadata.name ?? ''} --replicas=1`
}

function paused({ spec, metadata }: SeenObject, subject: Subject): Finding[] {
  if (recordOf(spec)['paused'] !== true) return []
  const todo = `kubectl rollout resume deployment ${metadata.name ?? ''}`
  return [{ subject, state: 'wrong', what: 'its rollout is paused: changes of the template make no pods', todo }]
}

function daemons({ status }: SeenObject, subject: Subject): Finding[] {
  const { desiredNumberScheduled, numberReady } = recordOf(status)
  const [want, ready] = [countOf(desiredNumberScheduled), countOf(numberReady)]
  if (ready >= want) return [{ subject, state: 'well', what: `${ready} of ${want} pods are ready` }]
  return [{ subject, state: 'waits', what: `${ready} of ${want} pods are ready`, waitsFor: 'its pods to be ready' }]
}

function suspended({ kind, spec, metadata }: SeenObject, subject: Subject): Finding[] {
  if (recordOf(spec)['suspend'] !== true) return []
  const patch = `-p '{"spec":{"suspend":false}}'`
  return [
    {
      subject,
      state: 'wrong',
      what: 'spec.suspend is true: it starts nothing',
      todo: `kubectl patch ${kind.toLowerCase()} ${metadata.name ?? ''} --type merge ${patch}`,
    },
  ]
}

function service({ spec, metadata }: SeenObject, subject: Subject, { endpointSlices }: Surroundings): Finding[] {
  const { selector, type } = recordOf(spec)
  if (endpointSlices === undefined || selector === undefined || type === 'ExternalName') return []
  const slices = endpointSlices.filter(
    (slice) => slice.metadata.labels?.['kubernetes.io/service-name'] === metadata.name,
  )
  const endpoints = slices.flatMap((slice) => listOf(slice['endpoints']).map(recordOf))
  const ready = endpoints.filter(({ conditions }) => recordOf(conditions)['ready'] !== false)
  if (ready.length > 0) return [{ subject, state: 'well', what: `${ready.length} endpoints are ready` }]
  const labels = Object.entries(recordOf(selector)).map(([key, value]) => `${key}=${textOf(value)}`)
  return [
    {
      subject,
      state: 'wrong',
      what: `it has no ready endpoint of ${endpoints.length}`,
      waitsFor: 'a ready pod that its selector selects',
      todo: `see its pods: kubectl get pods -n ${metadata.namespace ?? ''} -l ${labels.join(',')}`,
    },
  ]
}

function ingress({ status }: SeenObject, subject: Subject): Finding[] {
  if (listOf(recordOf(recordOf(status)['loadBalancer'])['ingress']).length > 0) return []
  return [
    {
      subject,
      state: 'waits',
      what: 'it has no address',
      waitsFor: 'an Ingress controller in a member that runs its Services',
      todo: 'name an IngressClass that the member has: kubectl get members -o yaml',
    },
  ]
}

function claim({ status, spec }: SeenObject, subject: Subject): Finding[] {
  const phase = textOf(recordOf(status)['phase'])
  if (phase === 'Bound') return [{ subject, state: 'well', what: 'it is Bound' }]
  const storageClass = textOf(recordOf(spec)['storageClassName'])
  return [
    {
      subject,
      state: phase === 'Lost' ? 'wrong' : 'waits',
      what: `it is ${phase === '' ? 'Pending' : phase}${storageClass === '' ? '' : `, of class ${storageClass}`}`,
      waitsFor: 'a pod that uses it to be placed, and a volume of its class there',
    },
  ]
}
