// The environments in which Kubernetes compiles expressions, by the version that decides which libraries there are.
import {
  type Declarations,
  type FunctionDeclaration,
  mergeFunctions,
  type StructDeclaration,
  type StructProvider,
} from '#apimachinery/cel/declarations/declarations.ts'
import { bindMacro, twoVariableFunctions, twoVariableMacros } from '#apimachinery/cel/library/comprehensions.ts'
import { kubernetesListFunctions, listFunctions, setFunctions, sortByMacro } from '#apimachinery/cel/library/lists.ts'
import { optionalFunctions, optionalMacros, optionalTypeName } from '#apimachinery/cel/library/optional.ts'
import { regexFunctions } from '#apimachinery/cel/library/patterns.ts'
import { standardFunctions, standardTypes } from '#apimachinery/cel/library/standard.ts'
import { stringFunctions } from '#apimachinery/cel/library/strings.ts'
import { type Macro, macroKey } from '#apimachinery/cel/syntax/macro.ts'
import type { ParserOptions } from '#apimachinery/cel/syntax/parse.ts'
import { standardMacros } from '#apimachinery/cel/syntax/standard-macros.ts'
import type { CelType } from '#apimachinery/cel/types/cel-type.ts'
import { type DeclaredType, fieldOfStruct, structsOf } from '#apimachinery/cel/types/declared-type.ts'
import { libraries } from './libraries.ts'

/** Everything that an expression is compiled with. Never changes once it is made. */
export interface Environment {
  readonly parser: ParserOptions
  readonly declarations: Declarations
  /** Elements of one list, keys of one map, values of one map must be of one type. */
  readonly homogeneousLiterals: boolean
}

/** Which libraries there are: those that every server of a version and the one before it knows. */
export interface EnvironmentOptions {
  /** The minor version, from 29: 33 for new expressions of a server of 1.34; all libraries by default. */
  readonly minor?: number
}

interface Library {
  readonly since: number
  readonly functions?: readonly FunctionDeclaration[]
  readonly macros?: readonly Macro[]
  readonly types?: readonly CelType[]
}

// What every supported server has comes first.
const all: readonly Library[] = [
  { since: 0, functions: standardFunctions, macros: standardMacros, types: standardTypes },
  { since: 0, functions: [...kubernetesListFunctions, ...regexFunctions, ...libraries.urls, ...stringFunctions] },
  { since: 0, functions: [...libraries.authorizer, ...libraries.quantity, ...setFunctions] },
  { since: 0, functions: optionalFunctions, macros: optionalMacros, types: [optionalTypeName] },
  { since: 30, functions: [...libraries.ip, ...libraries.cidr], types: libraries.networkTypes },
  { since: 31, functions: [...libraries.format, ...libraries.authorizerSelectors] },
  { since: 32, functions: twoVariableFunctions, macros: twoVariableMacros },
  { since: 33, functions: libraries.semver },
  { since: 34, functions: listFunctions, macros: [sortByMacro] },
]

const bases = new Map<number, Environment>()

/** The environment of a version, without variables. */
export function kubernetesEnvironment({ minor = Infinity }: EnvironmentOptions = {}): Environment {
  let base = bases.get(minor)
  if (base === undefined) {
    base = assemble(all.filter(({ since }) => since <= minor))
    bases.set(minor, base)
  }
  return base
}

function assemble(present: readonly Library[]): Environment {
  const macros = present.flatMap((library) => library.macros ?? [])
  const types = present.flatMap((library) => library.types ?? [])
  return {
    parser: { macros: macrosByKey(macros) },
    declarations: {
      container: '',
      variables: new Map(),
      functions: mergeFunctions(present.flatMap(({ functions = [] }) => functions)),
      typeNames: new Map(types.map((type) => [type.name, type])),
      struct: () => undefined,
    },
    homogeneousLiterals: true,
  }
}

const macrosByKey = (macros: readonly Macro[]): Map<string, Macro> =>
  new Map(macros.map((macro) => [macroKey(macro.name, macro.receiver, macro.argCount), macro]))

export interface Extension {
  /** Types of variables by name. */
  readonly variables?: Readonly<Record<string, CelType>>
  /** Types whose objects expressions may look into. */
  readonly declaredTypes?: readonly DeclaredType[]
  /** Types that expressions may make values of. */
  readonly structs?: StructProvider
  readonly functions?: readonly FunctionDeclaration[]
  /** Where names are looked up first. */
  readonly container?: string
  /** False allows lists and maps of mixed types. */
  readonly homogeneousLiterals?: boolean
  /** cel.bind(). */
  readonly bindings?: boolean
}

/** An environment with more in it. */
export function extendEnvironment(base: Environment, extension: Extension): Environment {
  const { variables = {}, declaredTypes = [], structs, functions = [], bindings = false } = extension
  const { declarations, parser } = base
  const macros = bindings ? new Map([...parser.macros, ...macrosByKey([bindMacro])]) : parser.macros
  return {
    ...base,
    parser: { ...parser, macros },
    homogeneousLiterals: extension.homogeneousLiterals ?? base.homogeneousLiterals,
    declarations: {
      ...declarations,
      container: extension.container ?? declarations.container,
      variables: new Map([...declarations.variables, ...Object.entries(variables)]),
      functions:
        functions.length === 0
          ? declarations.functions
          : mergeFunctions([...declarations.functions.values(), ...functions]),
      struct: firstOf([declaredStructs(declaredTypes), structs, declarations.struct]),
    },
  }
}

function firstOf(providers: readonly (StructProvider | undefined)[]): StructProvider {
  return (name) => {
    for (const provider of providers) {
      const found = provider?.(name)
      if (found !== undefined) return found
    }
    return undefined
  }
}

const structsByType = new WeakMap<DeclaredType, ReadonlyMap<string, DeclaredType>>()

function cachedStructs(type: DeclaredType): ReadonlyMap<string, DeclaredType> {
  let structs = structsByType.get(type)
  if (structs === undefined) {
    structs = structsOf(type)
    structsByType.set(type, structs)
  }
  return structs
}

function declaredStructs(types: readonly DeclaredType[]): StructProvider | undefined {
  if (types.length === 0) return undefined
  const known = types.map(cachedStructs)
  return (name): StructDeclaration | undefined => {
    const struct = known.map((structs) => structs.get(name)).find((found) => found !== undefined)
    if (struct === undefined) return undefined
    return { type: struct.type, fieldType: (field) => fieldOfStruct(struct, field)?.type }
  }
}
