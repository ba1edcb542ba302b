// Paths and operations of a resource in an OpenAPI v3 document, in which kubectl and helm look up the query parameters
// of a verb by kind.
import { groupVersionPath, type GroupVersionKind, type JsonObject } from '#apimachinery/meta/index.ts'
import type { ResourceInfo, SubresourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'

/** Resolves the definitions that operations refer to, other than `commonDefinitions`. */
export interface OperationSchemas {
  /** The name of a kind's definition; undefined if the document has none. */
  definitionOf(gvk: GroupVersionKind): string | undefined
}

const common = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** Definitions that the operations below refer to. */
export const commonDefinitions = [`${common}.DeleteOptions`, `${common}.Patch`, `${common}.Status`]

/** The paths of one resource and its subresources. */
export function resourcePaths(info: ResourceInfo, schemas: OperationSchemas): Record<string, JsonObject> {
  const base = groupVersionPath(info)
  const collection = info.namespaced ? `${base}/namespaces/{namespace}/${info.resource}` : `${base}/${info.resource}`
  const paths: Record<string, JsonObject> = {}
  const add = (path: string, operations: JsonObject): void => {
    if (Object.keys(operations).length > 0) paths[path] = { ...operations, parameters: pathParameters(path, info.kind) }
  }
  const build = new Operations(info, schemas)
  add(collection, build.collection())
  add(`${collection}/{name}`, build.single())
  if (info.namespaced) add(`${base}/${info.resource}`, build.allNamespaces())
  for (const sub of info.subresources) {
    // Subresources such as exec and proxy have no documents as bodies.
    if (sub.kind.endsWith('Options')) continue
    add(`${collection}/{name}/${sub.name}`, build.subresource(sub))
  }
  return paths
}

class Operations {
  readonly #info: ResourceInfo
  readonly #schemas: OperationSchemas

  constructor(info: ResourceInfo, schemas: OperationSchemas) {
    this.#info = info
    this.#schemas = schemas
  }

  collection(): JsonObject {
    return {
      ...this.#if('list', 'get', () => this.#operation('list', listParameters, { answer: this.#list() })),
      ...this.#if('create', 'post', () =>
        this.#operation('post', writeParameters, { body: this.#info, answer: this.#info }),
      ),
      ...this.#if('deletecollection', 'delete', () =>
        // As in kube-apiserver, only built-in resources document the options of deletecollection.
        this.#info.builtIn
          ? this.#operation('deletecollection', [...selectParameters, ...deleteParameters], { options: true })
          : this.#operation('deletecollection', listParameters, {}),
      ),
    }
  }

  single(): JsonObject {
    return {
      ...this.#if('get', 'get', () => this.#operation('get', this.#getParameters(), { answer: this.#info })),
      ...this.#if('update', 'put', () =>
        this.#operation('put', writeParameters, { body: this.#info, answer: this.#info }),
      ),
      ...this.#if('delete', 'delete', () => this.#operation('delete', deleteParameters, { options: true })),
      ...this.#if('patch', 'patch', () =>
        this.#operation('patch', patchParameters, { patch: true, answer: this.#info }),
      ),
    }
  }

  allNamespaces(): JsonObject {
    return this.#if('list', 'get', () =>
      this.#operation('list', listParameters, { answer: this.#list(), ofAllNamespaces: true }),
    )
  }

  subresource(sub: SubresourceInfo): JsonObject {
    const has = (verb: string, method: string, make: () => JsonObject): JsonObject =>
      sub.verbs.includes(verb) ? { [method]: make() } : {}
    return {
      ...has('get', 'get', () =>
        this.#operation('get', this.#getParameters(), { kind: sub, sub: sub.name, answer: sub }),
      ),
      ...has('update', 'put', () =>
        this.#operation('put', writeParameters, { kind: sub, sub: sub.name, body: sub, answer: sub }),
      ),
      ...has('create', 'post', () =>
        this.#operation('post', writeParameters, { kind: sub, sub: sub.name, body: sub, answer: sub }),
      ),
      ...has('patch', 'patch', () =>
        this.#operation('patch', patchParameters, { kind: sub, sub: sub.name, patch: true, answer: sub }),
      ),
    }
  }

  #getParameters(): readonly Parameter[] {
    return this.#info.builtIn ? [] : parametersOf('string', 'resourceVersion')
  }

  #list(): GroupVersionKind {
    return { ...this.#info, kind: `${this.#info.kind}List` }
  }

  #if(verb: string, method: string, make: () => JsonObject): JsonObject {
    return this.#info.verbs.includes(verb) ? { [method]: make() } : {}
  }

  #operation(
    action: string,
    parameters: readonly Parameter[],
    parts: {
      kind?: GroupVersionKind
      body?: GroupVersionKind
      answer?: GroupVersionKind
      options?: true
      patch?: true
      /** Name of the subresource. */
      sub?: string
      ofAllNamespaces?: true
    },
  ): JsonObject {
    // As in kube-apiserver, subresources of custom resources have their parent's kind.
    const { group, version, kind } = this.#info.builtIn ? (parts.kind ?? this.#info) : this.#info
    return {
      ...(this.#info.builtIn ? {} : textsOf(this.#info, action, parts)),
      tags: [`${tagOf(this.#info.group)}_${this.#info.version}`],
      ...(parameters.length === 0 ? {} : { parameters: parameters.map(queryParameter) }),
      ...this.#requestBody(parts),
      responses: this.#responses(action, parts.answer),
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { group, version, kind },
    }
  }

  #responses(action: string, answer: GroupVersionKind | undefined): JsonObject {
    const content = this.#content(['application/json', 'application/yaml'], answer)
    const answers = (texts: Readonly<Record<string, string>>): JsonObject =>
      Object.fromEntries(Object.entries(texts).map(([code, description]) => [code, { description, content }]))
    const isCustomPatch = action === 'patch' && !this.#info.builtIn
    const texts = isCustomPatch ? undefined : responseTexts[action]
    return { ...answers(texts ?? { '200': 'OK' }), '401': { description: 'Unauthorized' } }
  }

  #requestBody({ body, options, patch }: { body?: GroupVersionKind; options?: true; patch?: true }): JsonObject {
    const accepted = this.#info.builtIn ? ['*/*'] : ['application/json', 'application/yaml']
    if (body !== undefined) return { requestBody: { content: this.#content(accepted, body), required: true } }
    if (options) {
      const schema = reference(`${common}.DeleteOptions`)
      return { requestBody: { content: Object.fromEntries(accepted.map((type) => [type, { schema }])) } }
    }
    if (!patch) return {}
    const types = this.#info.builtIn
      ? ['apply-patch+yaml', 'json-patch+json', 'merge-patch+json', 'strategic-merge-patch+json']
      : ['json-patch+json', 'merge-patch+json', 'apply-patch+yaml']
    const content = Object.fromEntries(
      types.map((type) => [`application/${type}`, { schema: reference(`${common}.Patch`) }]),
    )
    return { requestBody: { content, required: true } }
  }

  #content(types: readonly string[], gvk: GroupVersionKind | undefined): JsonObject {
    const name = gvk === undefined ? `${common}.Status` : this.#schemas.definitionOf(gvk)
    const content: JsonObject = name === undefined ? {} : { schema: reference(name) }
    return Object.fromEntries(types.map((type) => [type, content]))
  }
}

/** The status codes of the actions with other responses than 200. */
const responseTexts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  post: { '200': 'OK', '201': 'Created', '202': 'Accepted' },
  put: { '200': 'OK', '201': 'Created' },
  patch: { '200': 'OK', '201': 'Created' },
  delete: { '200': 'OK', '202': 'Accepted' },
}

interface Parameter {
  readonly name: string
  readonly type: 'string' | 'boolean' | 'integer'
}

const parametersOf = (type: Parameter['type'], ...names: string[]): Parameter[] => names.map((name) => ({ name, type }))

const listParameters = [
  ...parametersOf('boolean', 'allowWatchBookmarks'),
  ...parametersOf('string', 'continue', 'fieldSelector', 'labelSelector'),
  ...parametersOf('integer', 'limit'),
  ...parametersOf('string', 'resourceVersion', 'resourceVersionMatch'),
  ...parametersOf('boolean', 'sendInitialEvents'),
  ...parametersOf('integer', 'timeoutSeconds'),
  ...parametersOf('boolean', 'watch'),
]
const selectParameters = listParameters.filter(({ name }) => name !== 'allowWatchBookmarks' && name !== 'watch')
const writeParameters = parametersOf('string', 'dryRun', 'fieldManager', 'fieldValidation')
const patchParameters = [...writeParameters, ...parametersOf('boolean', 'force')]
const deleteParameters = [
  ...parametersOf('string', 'dryRun'),
  ...parametersOf('integer', 'gracePeriodSeconds'),
  ...parametersOf('boolean', 'orphanDependents'),
  ...parametersOf('string', 'propagationPolicy'),
]

function queryParameter({ name, type }: Parameter): JsonObject {
  return { name, in: 'query', schema: { type, uniqueItems: true } }
}

function pathParameters(path: string, kind: string): JsonObject[] {
  const parameters: JsonObject[] = []
  const add = (name: string, description: string): void => {
    parameters.push({ name, in: 'path', description, required: true, schema: { type: 'string', uniqueItems: true } })
  }
  if (path.includes('{name}')) add('name', `name of the ${kind}`)
  if (path.includes('{namespace}')) add('namespace', 'namespace of the object')
  return [...parameters, queryParameter({ name: 'pretty', type: 'string' })]
}

const operationVerbs: Readonly<Record<string, string>> = { post: 'create', get: 'read', put: 'replace' }

/** Description and operationId of an operation of a custom resource, in kube-apiserver's words. */
function textsOf(
  { group, version, kind, namespaced }: ResourceInfo,
  action: string,
  { sub = '', ofAllNamespaces = false }: { sub?: string; ofAllNamespaces?: boolean },
): JsonObject {
  const verb = operationVerbs[action] ?? action
  const of = sub === '' ? '' : ` ${sub} of`
  const description =
    verb === 'deletecollection'
      ? `delete collection of${of} ${kind}`
      : `${verb === 'patch' ? 'partially update' : verb}${of}${articleOf(verb, kind)}${kind}`
  const scope = namespaced && !ofAllNamespaces ? 'Namespaced' : ''
  const what = `${scope}${capital(kind)}${capital(sub)}${ofAllNamespaces ? 'ForAllNamespaces' : ''}`
  const [prefix, collection] = verb === 'deletecollection' ? ['delete', 'Collection'] : [verb, '']
  return { description, operationId: `${prefix}${capital(tagOf(group))}${capital(version)}${collection}${what}` }
}

function articleOf(verb: string, kind: string): string {
  if (verb === 'list') return ' objects of kind '
  if (verb !== 'create' && verb !== 'delete') return ' the specified '
  if (kind.endsWith('s') && !kind.endsWith('ss')) return ' '
  return /^[aeiou]/i.test(kind) ? ' an ' : ' a '
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** The tag of a group: `exampleDev` for `example.dev`. */
function tagOf(group: string): string {
  if (group === '') return 'core'
  return group.replace(/\.k8s\.io$/, '').replace(/[.-]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** A reference to a definition of the same document. */
export function reference(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` }
}
