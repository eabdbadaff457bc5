// The texts of the page of a link to several files.

export const sharedFiles = {
  count: ({ n, count }) => (n === 1 ? "1 file" : `${count} files`),
  many: "More than 10,000 files",
  sent: { files: " sent you files", folder: " sent you a folder" },
  download_all: ({ size }) => `Download all as ZIP (${size})`,
  too_many: "These are too many for one ZIP. Download them one by one.",
  download: ({ name }) => `Download ${name}`,
  gone: ({ name }) => `${name} is not there any more.`,
  more: "Show more",
  none: "There is nothing in this folder at the moment.",
};
