// Validation of probes and lifecycle hooks.
import type {
  V1ExecAction,
  V1GRPCAction,
  V1HTTPGetAction,
  V1LifecycleHandler,
  V1Probe,
  V1SleepAction,
  V1TCPSocketAction,
} from '@kubernetes/client-node'
import { regexText } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative, portNumber, portOrName } from './basic-rules.ts'
import { all, each, fields, given, matches, must, nonEmpty, oneOf, rowsOf, type Rule } from './vocabulary.ts'

type Handler = Data<V1LifecycleHandler> & Pick<Data<V1Probe>, 'grpc'>
/** The pod's termination grace period, if it is valid. */
type GraceSeconds = number | undefined

const headerName = matches(
  /^[-A-Za-z0-9]+$/,
  regexText("a valid HTTP header must consist of alphanumeric characters or '-'", '[-A-Za-z0-9]+', 'X-Header-Name'),
)

const httpGet = fields<Data<V1HTTPGetAction>>({
  path: nonEmpty(),
  port: portOrName,
  scheme: given(oneOf(['HTTP', 'HTTPS'])),
  httpHeaders: each(({ name }, report) => report.at('..', headerName, name)),
})

const sleep: Rule<Data<V1SleepAction>, GraceSeconds> = ({ seconds }, report, most) => {
  if (most !== undefined && (seconds < 0 || seconds > most))
    report.invalid('', seconds, `must be non-negative and less than terminationGracePeriodSeconds (${most})`)
}

const actions = {
  exec: fields<Data<V1ExecAction>>({ command: nonEmpty() }),
  httpGet,
  tcpSocket: fields<Data<V1TCPSocketAction>>({ port: portOrName }),
  grpc: fields<Data<V1GRPCAction>>({ port: portNumber }),
  sleep,
}
const rows = rowsOf<Handler, GraceSeconds>(actions)

/** A handler has exactly one action. */
export const handler: Rule<Handler, GraceSeconds> = (one, report, graceSeconds) => {
  let seen = 0
  for (const { member, rule } of rows) {
    const action = one[member]
    if (!action) continue
    if (++seen > 1) report.forbidden(member, 'may not specify more than 1 handler type')
    else report.at(member, rule, action, graceSeconds)
  }
  if (seen === 0) report.required('', 'must specify a handler type')
}

const probe = all<Data<V1Probe>>(
  (one, report) => report.check(handler, one, undefined),
  fields({
    initialDelaySeconds: nonNegative,
    timeoutSeconds: nonNegative,
    periodSeconds: nonNegative,
    successThreshold: nonNegative,
    failureThreshold: nonNegative,
    terminationGracePeriodSeconds: must((seconds: number) => seconds > 0, 'must be greater than 0'),
  }),
)

/** A liveness or startup probe. */
export const lifeProbe = all(
  probe,
  fields<Data<V1Probe>>({ successThreshold: must((count) => count === 1, 'must be 1') }),
)
export const readinessProbe = all(
  probe,
  fields<Data<V1Probe>>({
    terminationGracePeriodSeconds: must(() => false, 'must not be set for readinessProbes'),
  }),
)
