// The reference of all fields of our custom resources, from their CustomResourceDefinitions.
import { kcpCrds, memberCrd, type CustomResourceDefinition, type JsonSchema } from '#crds/index.ts'

/** The page. */
export function fieldReference(): string {
  const all = [...kcpCrds(), memberCrd()]
  return `# Fields of the custom resources

Made from the CustomResourceDefinitions by \`make reference\`; \`kubectl explain\` says the same. [Custom resources](resources.md) says what
the kinds are for, and [annotations](annotations.md) what is written on other objects.

${all.map(sectionOf).join('\n\n')}
`
}

function sectionOf({ spec }: CustomResourceDefinition): string {
  const { names, group, scope, versions } = spec
  const [version] = versions
  const short = names.shortNames === undefined ? '' : ` (${names.shortNames.map((name) => `\`${name}\``).join(', ')})`
  const schema = version?.schema.openAPIV3Schema
  const rows = ['spec', 'status'].flatMap((part) => {
    const child = schema?.properties?.[part]
    return child === undefined ? [] : rowsOf(child, part)
  })
  return [
    `## ${names.kind}${short}`,
    '',
    `\`${group}/${version?.name ?? ''}\`, scope ${scope}. ${schema?.description ?? ''}`,
    ...['', '| field | type | |', '|---|---|---|'],
    ...rows,
  ].join('\n')
}

function rowsOf(schema: JsonSchema, path: string): string[] {
  const own = `| \`${path}\` | ${typeText(schema)} | ${cell(descriptionOf(schema))} |`
  const { properties = {}, items } = schema
  const inner = items?.properties ?? properties
  const below = items?.properties === undefined ? path : `${path}[]`
  // Conditions are the same everywhere.
  const children = path.endsWith('.conditions') ? [] : Object.entries(inner)
  return [own, ...children.flatMap(([name, child]) => rowsOf(child, `${below}.${name}`))]
}

function typeText({ type, items, format }: JsonSchema): string {
  if (type === undefined) return 'any'
  if (type === 'array') return `list of ${items?.type ?? 'any'}`
  return format === undefined ? type : `${type} (${format})`
}

function descriptionOf({ description = '', enum: values, default: usual, minimum, maximum }: JsonSchema): string {
  const parts = [
    description,
    ...(values === undefined
      ? []
      : [`One of ${values.map((value) => `\`${JSON.stringify(value).replaceAll('"', '')}\``).join(', ')}.`]),
    ...(typeof usual === 'string' || typeof usual === 'number' ? [`Default \`${usual}\`.`] : []),
    ...(minimum === undefined || maximum === undefined ? [] : [`From ${minimum} to ${maximum}.`]),
  ]
  return parts.filter((part) => part !== '').join(' ')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;')
}
