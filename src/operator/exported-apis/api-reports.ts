// The report on each exported API of a member, from the negotiations in all logical clusters. Pure.
import { maxDroppedFields, tryExportedApi, type ApiReport, type DroppedField } from '#crds/index.ts'
import type { Negotiated } from './negotiate.ts'

/** What was found for one API in one logical cluster. */
export interface Outcome extends Pick<Negotiated, 'members' | 'incompatible' | 'dropped'> {
  readonly cluster: string
  readonly name: string
  /** Why the logical cluster does not have the API as it was negotiated. */
  readonly problem?: string
}

export interface MemberReport {
  readonly apis: readonly ApiReport[]
  readonly problems: readonly string[]
}

/** By member; members without any outcome are absent. */
export function apiReports(outcomes: Iterable<Outcome>): Map<string, MemberReport> {
  const reports = new Map<string, { apis: Map<string, Draft>; problems: Set<string> }>()
  const draftOf = (member: string, name: string): Draft => {
    const report = reports.get(member) ?? { apis: new Map<string, Draft>(), problems: new Set<string>() }
    const draft = report.apis.get(name) ?? { logicalClusters: 0, dropped: new Map<string, DroppedField>() }
    reports.set(member, report)
    report.apis.set(name, draft)
    return draft
  }
  for (const { cluster, name, members, incompatible, dropped, problem } of outcomes) {
    for (const member of members) {
      const draft = draftOf(member, name)
      if (problem === undefined) draft.logicalClusters++
      else reports.get(member)?.problems.add(problem)
      for (const field of dropped) addField(draft, field)
    }
    for (const [member, why] of incompatible) {
      const draft = draftOf(member, name)
      const told = `in logical cluster "${cluster}": ${why}`
      if (draft.incompatible === undefined || told < draft.incompatible) draft.incompatible = told
      reports.get(member)?.problems.add(why)
      for (const field of dropped) addField(draft, field)
    }
  }
  return new Map(
    [...reports].map(([member, { apis, problems }]) => [
      member,
      {
        apis: [...apis].flatMap(([name, draft]) => reportOf(name, draft)),
        problems: [...problems].sort(),
      },
    ]),
  )
}

interface Draft {
  logicalClusters: number
  incompatible?: string
  readonly dropped: Map<string, DroppedField>
}

function addField({ dropped }: Draft, field: DroppedField): void {
  if (dropped.size < maxDroppedFields) dropped.set(`${field.version} ${field.path}`, field)
}

function reportOf(name: string, { logicalClusters, incompatible, dropped }: Draft): ApiReport[] {
  const api = tryExportedApi(name)
  if (api === undefined) return []
  const droppedFields = [...dropped].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, field]) => field)
  return [
    {
      ...api,
      logicalClusters,
      droppedFields,
      ...(incompatible !== undefined && { incompatible: incompatible.slice(0, 1000) }),
    },
  ]
}
