// Findings as lines for a terminal.
import { ageText } from './age-text.ts'
import type { Finding, FindingState, Subject } from './finding.ts'

const words: Readonly<Record<FindingState, string>> = { wrong: 'WRONG', waits: 'WAITS', well: 'ok   ', note: 'note ' }

/** One line for each finding, with the wait and the remedy below. */
export function findingsText(findings: readonly Finding[], nowMs: number): string {
  return findings.map((finding) => findingText(finding, nowMs)).join('\n')
}

/** A message of a tenant or a member must not look like another finding. */
function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]\s*/g, ' ')
}

function findingText({ subject, state, what, since, waitsFor, until, then, todo }: Finding, nowMs: number): string {
  const age = since === undefined ? '' : ` for ${ageText(nowMs - Date.parse(since))}`
  const noted = since === undefined ? '' : `, ${ageText(nowMs - Date.parse(since))} ago`
  const end = until === undefined ? '' : `${deadlineText(until, nowMs)}${then === undefined ? '' : `: then ${then}`}`
  return [
    `${words[state]} ${subjectText(subject)}: ${oneLine(what)}${state === 'note' ? noted : waitsFor === undefined ? age : ''}`,
    ...(waitsFor === undefined ? [] : [`      waits${age} for ${waitsFor}${end}`]),
    ...(todo === undefined ? [] : [`      -> ${todo}`]),
  ].join('\n')
}

function deadlineText(until: string, nowMs: number): string {
  const ms = Date.parse(until) - nowMs
  return ms > 0 ? `; at most ${ageText(ms)} more` : `; its time was over ${ageText(-ms)} ago`
}

function subjectText({ cluster, kind, namespace, name }: Subject): string {
  const path = namespace === undefined ? name : `${namespace}/${name}`
  return `${kind} ${path}${cluster === undefined ? '' : ` in ${cluster}`}`
}
