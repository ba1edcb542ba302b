// The state of members, as far as it concerns what runs there or should. Takes MemberClusters, and the Members that a
// tenant sees.
import { conditionFindings } from './conditions.ts'
import { conditionOf, countOf, listOf, recordOf, subjectOf, textOf, type Finding, type SeenObject } from './finding.ts'

/** The findings about a member; none if it takes workloads and answers. */
export function memberFindings(member: SeenObject): Finding[] {
  const problems = conditionFindings(member, subjectOf(member))
  const { state } = recordOf(member['spec'])
  // Other conditions repeat a member that does not answer.
  const ready = problems.filter(({ what }) => what.startsWith('Ready '))
  return [...(ready.length > 0 ? ready : problems), ...stateFindings(member, textOf(state)), ...apiFindings(member)]
}

/** What logical clusters lack of the APIs that the member exports, and what they cannot use of it. */
function apiFindings(member: SeenObject): Finding[] {
  const subject = subjectOf(member)
  return listOf(recordOf(member['status'])['exportedAPIs'])
    .map(recordOf)
    .flatMap((api): Finding[] => {
      const name = `${textOf(api['resource'])}.${textOf(api['group'])}`
      const status = { ...member, status: api }
      const problems = conditionFindings(status, subject)
        .filter(({ what }) => what.startsWith('Compatible '))
        .map((finding) => ({ ...finding, what: `${name}: ${finding.what}` }))
      const fields = listOf(api['droppedFields'])
        .map(recordOf)
        .map((field) => `${textOf(field['path'])} (${listOf(field['members']).map(textOf).join(', ')})`)
      if (fields.length === 0) return problems
      const what = `logical clusters do not have all fields of ${name}, because members lack them: ${fields.join(', ')}`
      return [...problems, { subject, state: 'note', what }]
    })
}

function stateFindings(member: SeenObject, state: string): Finding[] {
  const subject = subjectOf(member)
  const name = member.metadata.name ?? ''
  const isDeleted = member.metadata.deletionTimestamp !== undefined
  if (state === 'Cordoned' && !isDeleted)
    return [
      {
        subject,
        state: 'note',
        what: 'it is cordoned: it takes no new workloads',
        todo: `admin: kcp uncordon ${name}`,
      },
    ]
  if (state !== 'Draining' && !isDeleted) return []
  const { moving, held, remaining } = recordOf(member['status'])
  const drained = conditionOf(member, 'Drained')
  if (drained?.status === 'True')
    return [{ subject, state: 'note', what: `it is drained: ${drained.message}`, since: drained.lastTransitionTime }]
  const stuck = listOf(remaining)
    .map(recordOf)
    .filter((one) => one['state'] === 'Held')
  return [
    {
      subject,
      state: 'waits',
      what: `it is ${isDeleted ? 'being deleted' : 'draining'}: ${countOf(moving)} workloads are moving, ${countOf(held)} can go nowhere`,
      waitsFor: 'nothing to be left there',
      ...(drained !== undefined && { since: drained.lastTransitionTime }),
      ...(countOf(held) > 0 && { todo: 'give the workloads below room in another member, or let Jobs end' }),
    },
    ...stuck.map((one): Finding => {
      const [cluster, kind, namespace, workload] = ['logicalCluster', 'kind', 'namespace', 'name'].map((field) =>
        textOf(one[field]),
      )
      return {
        subject: { cluster: cluster ?? '', kind: kind ?? '', namespace: namespace ?? '', name: workload ?? '' },
        state: 'wrong',
        what: `it cannot leave ${name}: ${textOf(one['message'])}`,
      }
    }),
  ]
}

/** Whether a member answers. */
export function isReadyMember(member: SeenObject): boolean {
  return conditionOf(member, 'Ready')?.status === 'True'
}
