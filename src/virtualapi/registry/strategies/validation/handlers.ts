// Probes and lifecycle hooks.
import type { V1LifecycleHandler, V1Probe } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { nonNegative, oneOf, portNumber, portOrName, required } from './values.ts'

type Handler = Data<V1LifecycleHandler> & Pick<Data<V1Probe>, 'grpc'>

/** A handler does exactly one thing. */
export function handlerCauses(path: string, handler: Handler): StatusCause[] {
  const causes: StatusCause[] = []
  let seen = 0
  const only = (member: string, check: () => StatusCause[]): void => {
    if (++seen > 1) causes.push(fieldForbidden(`${path}.${member}`, 'may not specify more than 1 handler type'))
    else causes.push(...check())
  }
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler
  if (exec) only('exec', () => (exec.command?.length ? [] : [fieldRequired(`${path}.exec.command`)]))
  if (httpGet)
    only('httpGet', () => [
      ...required(`${path}.httpGet.path`, httpGet.path),
      ...portOrName(`${path}.httpGet.port`, httpGet.port),
      ...oneOf(`${path}.httpGet.scheme`, httpGet.scheme, ['HTTP', 'HTTPS']),
    ])
  if (tcpSocket) only('tcpSocket', () => portOrName(`${path}.tcpSocket.port`, tcpSocket.port))
  if (grpc) only('grpc', () => portNumber(`${path}.grpc.port`, grpc.port))
  if (sleep) only('sleep', () => [])
  if (seen === 0) causes.push(fieldRequired(path, 'must specify a handler type'))
  return causes
}

/** `mustSucceedOnce`: of liveness and startup probes, one success is enough, and no other number makes sense. */
export function probeCauses(
  path: string,
  probe: Data<V1Probe> | undefined,
  { mustSucceedOnce }: { mustSucceedOnce: boolean },
): StatusCause[] {
  if (probe === undefined) return []
  const causes = handlerCauses(path, probe)
  for (const member of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ] as const)
    causes.push(...nonNegative(`${path}.${member}`, probe[member]))
  const grace = probe.terminationGracePeriodSeconds
  if (grace !== undefined && grace <= 0)
    causes.push(fieldInvalid(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than 0'))
  if (mustSucceedOnce && probe.successThreshold !== undefined && probe.successThreshold !== 1)
    causes.push(fieldInvalid(`${path}.successThreshold`, probe.successThreshold, 'must be 1'))
  return causes
}
