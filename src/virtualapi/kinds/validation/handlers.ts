// Validation of probes and lifecycle hooks.
import type { V1LifecycleHandler, V1Probe } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired, regexText } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative, oneOf, portNumber, portOrName, required } from './values.ts'

type Handler = Data<V1LifecycleHandler> & Pick<Data<V1Probe>, 'grpc'>

const headerText = regexText(
  "a valid HTTP header must consist of alphanumeric characters or '-'",
  '[-A-Za-z0-9]+',
  'X-Header-Name',
)

/**
 * Validates that a handler has exactly one action. `graceSeconds`: the pod's termination grace period, if it is valid.
 */
export function handlerCauses(path: string, handler: Handler, graceSeconds?: number): StatusCause[] {
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
      ...(httpGet.httpHeaders ?? []).flatMap(({ name }) =>
        /^[-A-Za-z0-9]+$/.test(name) ? [] : [fieldInvalid(`${path}.httpGet.httpHeaders`, name, headerText)],
      ),
    ])
  if (tcpSocket) only('tcpSocket', () => portOrName(`${path}.tcpSocket.port`, tcpSocket.port))
  if (grpc) only('grpc', () => portNumber(`${path}.grpc.port`, grpc.port))
  if (sleep) only('sleep', () => sleepCauses(`${path}.sleep`, sleep.seconds, graceSeconds))
  if (seen === 0) causes.push(fieldRequired(path, 'must specify a handler type'))
  return causes
}

function sleepCauses(path: string, seconds: number, graceSeconds: number | undefined): StatusCause[] {
  if (graceSeconds === undefined || (seconds >= 0 && seconds <= graceSeconds)) return []
  const detail = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`
  return [fieldInvalid(path, seconds, detail)]
}

/**
 * Validates a probe. `life`: liveness and startup probes, whose successThreshold must be 1; `readiness` may not set a
 * grace period.
 */
export function probeCauses(
  path: string,
  probe: Data<V1Probe> | undefined,
  { of }: { of: 'life' | 'readiness' },
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
  const { terminationGracePeriodSeconds: grace, successThreshold = 1 } = probe
  const at = `${path}.terminationGracePeriodSeconds`
  if (grace !== undefined && grace <= 0) causes.push(fieldInvalid(at, grace, 'must be greater than 0'))
  if (of === 'life' && successThreshold !== 1)
    causes.push(fieldInvalid(`${path}.successThreshold`, successThreshold, 'must be 1'))
  if (of === 'readiness' && grace !== undefined)
    causes.push(fieldInvalid(at, grace, 'must not be set for readinessProbes'))
  return causes
}
