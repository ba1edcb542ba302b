/** Why a database is not opened, in one line meant for the person who started the program. */
export class DatabaseRefused extends Error {}
