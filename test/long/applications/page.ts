// The table of docs/reference/applications.md.
import { templateOf, type Manifest } from './manifest.ts'
import type { Application } from './read-applications.ts'

export const pageHeader = ['', '| application | manifests | applied by | workloads | |', '|---|---|---|---|---|']

/** One application that ran. */
export function rowOf({ title, module, paths = [], chart, objects, refused, stays = {}, remark }: Application): string {
  const project = module?.split('/').slice(1).join('/')
  const where = [project, `\`${chart?.path ?? paths[0] ?? ''}\``].filter((part) => part !== undefined).join(' ')
  const remarks = [
    ...(refused === undefined ? [] : [`needs pod security \`privileged\`: \`baseline\` refuses it (${refused})`]),
    ...(remark === undefined ? [] : [remark]),
    ...Object.entries(stays).map(([name, reason]) => `${name} does not run: ${reason}`),
  ]
  const how = chart === undefined ? 'kubectl' : 'Helm'
  return `| ${title} | ${where} | ${how} | ${workloadsText(objects)} | ${remarks.join('; ')} |`
}

/** What an application has: `2 Deployments, 1 Job`. */
function workloadsText(objects: readonly Manifest[]): string {
  const kinds = objects.filter((object) => templateOf(object) !== undefined).map(({ kind }) => kind)
  const count = (kind: string): number => kinds.filter((one) => one === kind).length
  return [...new Set(kinds)].map((kind) => `${count(kind)} ${kind}${count(kind) > 1 ? 's' : ''}`).join(', ')
}
