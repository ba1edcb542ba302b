// The program's own version, as package.json has it.

/** SemVer. */
export const programVersion = '0.1.0'
