// The tables of docs/reference/applications.md.
import { templateOf, type Manifest } from './manifest.ts'
import type { ApplicationSource, UnusableSource } from './catalogue.ts'
import type { Application } from './read-applications.ts'

export const pageHeader = ['', '| application | manifests | applied by | workloads | |', '|---|---|---|---|---|']

/** One application that ran. */
export function rowOf(app: Application): string {
  const { title, chart, objects, refused, stays = {}, remark } = app
  const reasons = [...new Set(Object.values(stays))]
  const staying = (reason: string): string =>
    Object.keys(stays)
      .filter((name) => stays[name] === reason)
      .join(', ')
  const remarks = [
    ...(refused === undefined ? [] : [`needs pod security \`privileged\`: \`baseline\` refuses it (${refused})`]),
    ...(remark === undefined ? [] : [remark]),
    ...reasons.map((reason) => `not all pods of ${staying(reason)} run: "${reason}"`),
  ]
  const how = chart === undefined ? 'kubectl' : 'Helm'
  return `| ${title} | ${whereOf(app)} | ${how} | ${workloadsText(objects)} | ${remarks.join('; ')} |`
}

export const unusableHeader = [
  '',
  '| application | manifests | applied by | why it does not run |',
  '|---|---|---|---|',
]

export const unusableRow = (source: UnusableSource): string =>
  `| ${source.title} | ${whereOf(source)} | ${source.chart === undefined ? 'kubectl' : 'Helm'} | ${source.reason} |`

/** The project and the file or folder in it. */
function whereOf({ module, paths = [], chart }: ApplicationSource): string {
  const project = module?.split('/').slice(1).join('/')
  return [project, `\`${chart?.path ?? paths[0] ?? ''}\``].filter((part) => part !== undefined).join(' ')
}

/** What an application has: `2 Deployments, 1 Job`. */
function workloadsText(objects: readonly Manifest[]): string {
  const kinds = objects.filter((object) => templateOf(object) !== undefined).map(({ kind }) => kind)
  const count = (kind: string): number => kinds.filter((one) => one === kind).length
  return [...new Set(kinds)].map((kind) => `${count(kind)} ${kind}${count(kind) > 1 ? 's' : ''}`).join(', ')
}
