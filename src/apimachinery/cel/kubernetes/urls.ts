// url(), isURL() and the methods of URLs.
import {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
} from '#apimachinery/cel/declarations/declarations.ts'
import { boolType, type CelType, listOf, mapOf, stringType, structType } from '#apimachinery/cel/types/cel-type.ts'
import { ArrayList, EntryMap } from '#apimachinery/cel/values/collections.ts'
import { CelError, CelObject, noSuchOverload, type Value } from '#apimachinery/cel/values/value.ts'
import {
  escapedPath,
  type GoUrl,
  hostname,
  parseRequestUri,
  parseUrl,
  port,
  printUrl,
  queryValues,
} from '#apimachinery/text/index.ts'

const urlType = structType('kubernetes.URL')

class UrlValue extends CelObject {
  readonly typeName = 'kubernetes.URL'
  readonly url: GoUrl

  constructor(url: GoUrl) {
    super()
    this.url = url
  }

  override equalTo(other: Value): boolean | CelError {
    return other instanceof UrlValue ? this.text === other.text : noSuchOverload
  }

  get text(): string {
    return printUrl(this.url)
  }
}

function toUrl(text?: Value): Value {
  if (typeof text !== 'string') return noSuchOverload
  try {
    parseRequestUri(text)
    return new UrlValue(parseUrl(text))
  } catch (error) {
    return new CelError(`URL parse error during conversion from string: ${error instanceof Error ? error.message : ''}`)
  }
}

/** What is wrong with a text that should be a URL; undefined where it is one. */
export function urlError(text: string): string | undefined {
  try {
    parseRequestUri(text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : 'invalid URL'
  }
}

function method(name: string, id: string, result: CelType, read: (url: GoUrl) => Value): FunctionDeclaration {
  const run: Implementation = (value) => (value instanceof UrlValue ? read(value.url) : noSuchOverload)
  return { name, overloads: [member(id, [urlType], result, run)] }
}

function queryMap(url: GoUrl): Value {
  const map = new EntryMap()
  for (const [name, values] of queryValues(url)) map.set(name, new ArrayList(values))
  return map
}

export const urlFunctions: readonly FunctionDeclaration[] = [
  { name: 'url', overloads: [overload('string_to_url', [stringType], urlType, toUrl)] },
  method('getScheme', 'url_get_scheme', stringType, ({ scheme }) => scheme),
  method('getHost', 'url_get_host', stringType, ({ host }) => host),
  method('getHostname', 'url_get_hostname', stringType, hostname),
  method('getPort', 'url_get_port', stringType, port),
  method('getEscapedPath', 'url_get_escaped_path', stringType, escapedPath),
  method('getQuery', 'url_get_query', mapOf(stringType, listOf(stringType)), queryMap),
  {
    name: 'isURL',
    overloads: [
      overload('is_url_string', [stringType], boolType, (text) =>
        typeof text === 'string' ? urlError(text) === undefined : noSuchOverload,
      ),
    ],
  },
]
