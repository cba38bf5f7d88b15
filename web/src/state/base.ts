/** What stands before every path, without a slash at its end: the daemon writes it into the document. */
export const BASE_PATH = new URL(document.baseURI).pathname.replace(/\/$/, '');
