// Why a pod does not run: where it waits, and which of its containers fail.
import { countOf, listOf, recordOf, subjectOf, textOf, todoIf, type Finding, type SeenObject } from './finding.ts'
import { memberAnnotation } from './copies.ts'
import { conditionFindings } from './conditions.ts'
import { remedyOf } from './remedies.ts'

/** The findings about one pod; none if all is well or the pod has completed. */
export function podFindings(pod: SeenObject, cluster: string): Finding[] {
  const { phase } = recordOf(pod['status'])
  if (phase === 'Succeeded') return []
  const subject = subjectOf(pod, cluster)
  const containers = [...statusesOf(pod, 'initContainerStatuses'), ...statusesOf(pod, 'containerStatuses')]
  const failing = containers.flatMap((status): Finding[] => {
    const why = containerProblem(status)
    if (why === undefined) return []
    const { reason, text, isUrgent } = why
    const where = pod.metadata.annotations?.[memberAnnotation]
    const what = `container ${textOf(status['name'])}${where === undefined ? '' : ` in ${where}`} ${text}`
    return [{ subject, state: isUrgent ? 'wrong' : 'waits', what, reason, ...todoIf(podTodo(reason, pod)) }]
  })
  // The conditions of a pod only repeat what its containers say.
  if (failing.length > 0) return failing
  const { reason, message } = recordOf(pod['status'])
  if (phase === 'Failed') {
    const why = textOf(reason)
    const text = [why, textOf(message)].filter((word) => word !== '').join(': ')
    return [
      { subject, state: 'wrong', what: `it has failed${text === '' ? '' : `: ${text}`}`, ...todoIf(remedyOf(why)) },
    ]
  }
  const conditions = conditionFindings(pod, subject)
  const scheduled = conditions.filter(({ what }) => what.startsWith('PodScheduled '))
  return scheduled.length > 0 ? scheduled : conditions.slice(0, 1)
}

function statusesOf(pod: SeenObject, field: string): readonly Readonly<Record<string, unknown>>[] {
  return listOf(recordOf(pod['status'])[field]).map(recordOf)
}

interface ContainerProblem {
  readonly reason: string
  readonly text: string
  readonly isUrgent: boolean
}

const starting: readonly string[] = ['ContainerCreating', 'PodInitializing']

function containerProblem({
  state,
  lastState,
  restartCount,
}: Readonly<Record<string, unknown>>): ContainerProblem | undefined {
  const { waiting, terminated } = recordOf(state)
  const restarts = countOf(restartCount)
  const again = restarts === 0 ? '' : `, after ${restarts} restarts`
  if (waiting !== undefined) {
    const { reason, message } = recordOf(waiting)
    const why = textOf(reason)
    const last = recordOf(recordOf(lastState)['terminated'])
    const ended = last['exitCode'] === undefined ? '' : `; it ended with code ${countOf(last['exitCode'])}`
    const told = textOf(message) === '' ? '' : ` (${textOf(message)})`
    return { reason: why, text: `waits: ${why}${told}${again}${ended}`, isUrgent: !starting.includes(why) }
  }
  const { reason, exitCode } = recordOf(terminated)
  if (terminated === undefined || countOf(exitCode) === 0) return undefined
  return {
    reason: textOf(reason),
    text: `ended with code ${countOf(exitCode)}: ${textOf(reason)}${again}`,
    isUrgent: true,
  }
}

function podTodo(reason: string, { metadata }: SeenObject): string | undefined {
  const where = metadata.namespace === undefined ? '' : ` -n ${metadata.namespace}`
  return remedyOf(reason)?.replace('POD', `${metadata.name ?? ''}${where}`)
}
